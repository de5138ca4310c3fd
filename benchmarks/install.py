"""Cost of an installation: megabytes of the base and of each optional part, and seconds to the first verdict.

Of the wheel that ``make dist`` leaves in dist/. Packages come from uv's cache, or are downloaded into it first.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from ajuste.machine.home import EXTRAS
from benchmarks.comparison import Comparison, seconds

ROOT: Final = Path(__file__).resolve().parent.parent
MOST_MB: Final = 300
LONGEST_S: Final = 60
_BIN: Final = Path(sys.executable).parent


def measure() -> tuple[Comparison, ...]:
    """The base and every extra in an environment of its own."""
    wheels = sorted((ROOT / "dist").glob("ajuste-*.whl"))
    if not wheels:
        raise SystemExit("there is no wheel in dist/; build it with make dist")
    wheel = str(wheels[-1])
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        _install(wheel, place / "first")  # after this all packages of the base are in the cache
        took = seconds(lambda: _first_verdict(wheel, place))
        _ajuste(place, "report", "compare", "--html", "report.html")
        figures = {
            "base, used": [_megabytes(place / "base")],
            "base, no bytecode": [_megabytes(place / "first")],
        }
        _install(wheel, place / "compiled", "--compile-bytecode")
        figures["base, all bytecode"] = [_megabytes(place / "compiled")]
        for extra in (*EXTRAS, "all"):
            _install(f"{wheel}[{extra}]", place / extra, "--compile-bytecode")
            figures[f"with {extra}, all bytecode"] = [_megabytes(place / extra)]
    size = Comparison(
        name="install-size",
        what="files of an environment with Ajuste; used: with the bytecode of `compare` and `report --html`",
        unit="MB",
        figures=figures,
        goal=f"base at most {MOST_MB} MB",
        reached=figures["base, used"][0] <= MOST_MB,
    )
    time = Comparison(
        name="install-time",
        what="from the wheel to the verdict of `ajuste compare -- sleep 0.01`, packages cached",
        unit="s",
        figures={"ajuste": [took]},
        goal=f"under {LONGEST_S} s",
        reached=took < LONGEST_S,
    )
    return size, time


def _first_verdict(wheel: str, place: Path) -> None:
    _install(wheel, place / "base")
    _ajuste(place, "compare", "--quiet", "--", "sleep", "0.01")


def _ajuste(place: Path, *words: str) -> None:
    """The command of the base installation. Python keeps the bytecode of what it uses."""
    left_out = ("PYTHONPATH", "AJUSTE_NATIVE", "PYTHONDONTWRITEBYTECODE")
    inherited = {name: value for name, value in os.environ.items() if name not in left_out}
    environment = {**inherited, "AJUSTE_HOME": str(place / "home")}
    subprocess.run([place / "base" / "bin" / "ajuste", *words], cwd=place, env=environment, check=True)


def _install(what: str, prefix: Path, *options: str) -> None:
    uv = str(_BIN / "uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(prefix)], check=True)
    beside = ["--find-links", str(ROOT / "dist"), "--refresh-package", "ajuste"]
    words = ["pip", "install", "--quiet", *beside, *options, "--python", str(prefix / "bin" / "python")]
    subprocess.run([uv, *words, what], check=True)


def _megabytes(prefix: Path) -> float:
    """Return the size of all regular files; a megabyte is a million bytes."""
    files = (file for file in prefix.rglob("*") if file.is_file() and not file.is_symlink())
    return sum(file.stat().st_size for file in files) / 1e6

"""A wheel of this tree, with the programs that are there, and environments that it is installed in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from writing.manual import write_share

from ajuste.machine.files import locked
from ajuste.machine.home import AGENT, native_program

ROOT = Path(__file__).parents[1]


def build(directory: Path, programs: Path | None = None) -> Path:
    """The wheels in ``directory``: returns the core's, of the native ``programs`` or those of this tree.

    Nothing is compiled or downloaded; one build at a time, as they share target/share.
    """
    native = str(programs or native_program(AGENT).parent)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "AJUSTE_NATIVE": native}
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory)]
    with locked(ROOT / "target" / ".share-lock"):
        write_share()
        for package in (ROOT, *sorted((ROOT / "packages").iterdir())):
            subprocess.run(command, cwd=package, env=environment, check=True, capture_output=True)
    (wheel,) = directory.glob("ajuste-*.whl")
    return wheel


@dataclass(frozen=True)
class Installed:
    """An environment of its own, outside of the source tree."""

    prefix: Path

    @property
    def packages(self) -> Path:
        return Path(sysconfig.get_path("purelib", "venv", {"base": str(self.prefix)}))

    @property
    def native(self) -> Path:
        return self.packages / "ajuste" / "native"

    def without(self, *names: str) -> None:
        """Take Python packages away."""
        for name in names:
            (self.packages / name).unlink()

    def run(self, *words: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """The installed command, in an empty directory and with a home of its own."""
        inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "AJUSTE_NATIVE")}
        place = self.prefix.parent / "here"
        place.mkdir(exist_ok=True)
        return subprocess.run(
            [self.prefix / "bin" / "ajuste", *words],
            cwd=place,
            env={**inherited, "AJUSTE_HOME": str(self.prefix.parent / "home"), **(environment or {})},
            capture_output=True,
            text=True,
            timeout=200,
        )


def install(wheel: Path, prefix: Path, *, alone: bool = False) -> Installed:
    """The wheel and those beside it, installed beside links to the packages of the environment that runs the tests.

    If ``alone``, without those of other packages than the statistics, which the core needs.
    """
    installation = Installed(prefix)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", installation.prefix], check=True)
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "ajuste" not in entry.name and entry.suffix != ".pth":
            (installation.packages / entry.name).symlink_to(entry)
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    install_only = ["pip", "install", "--quiet", "--offline", "--no-index", "--no-deps", "--link-mode", "copy"]
    wheels = map(str, {wheel, *wheel.parent.glob("ajuste_stats-*.whl")} if alone else wheel.parent.glob("*.whl"))
    subprocess.run([uv, *install_only, "--python", str(installation.prefix / "bin" / "python"), *wheels], check=True)
    return installation

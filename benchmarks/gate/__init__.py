"""Check that ``ajuste gate`` proves planted regressions, raises no false alarm, and says the same everywhere."""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from ajuste.machine.home import home
from benchmarks.comparison import Comparison

REPEATS: Final = 5
TIMES: Final = 3
LONGEST_SECONDS: Final = 15.0
_AJUSTE: Final = Path(sys.executable).parent / "ajuste"
_SOURCES: Final = Path(__file__).parent
_EQUAL: Final = "more-instructions"
CAUSES: Final = {
    "more-instructions": frozenset(("mixed",)),
    "more-fsync": frozenset(("fsync",)),
    "more-system-calls": frozenset(("getuid",)),
    "lock-held-longer": frozenset[str](),
    "allocation-in-a-loop": frozenset(("malloc", "_int_malloc", "_int_free", "free", "cfree")),
}
"""The functions and system calls of which one is to be named for each regression; none where the time to wait grew."""


class GateResult(NamedTuple):
    """Output of a gate, its exit code, and how long it took."""

    document: Any
    code: int
    seconds: float


def measure(repeats: int = REPEATS, times: int = TIMES) -> tuple[Comparison, ...]:
    return _planted(), _equal(repeats), *_again(times)


def _planted() -> Comparison:
    """Measure one gate of all five."""
    with _project() as directory:
        _commit(directory, planted=True)
        gate = _gate(directory, directory.parent / "home")
    figures: dict[str, list[float]] = {}
    proved = named = 0
    for benchmark in gate.document["benchmarks"]:
        functions = [grown["name"] for grown in (*benchmark["functions"], *benchmark["calls"])]
        wanted = CAUSES[benchmark["name"]]
        is_named = not wanted or bool(wanted & set(functions))
        proved += benchmark["verdict"] == "regression"
        named += is_named
        words = f": {', '.join(functions)}" if wanted else ""
        figures[f"{benchmark['name']}{words}{'' if is_named else ' (NOT THE CAUSE)'}"] = [
            100 * (benchmark["estimate"] - 1)
        ]
    whole = len(CAUSES)
    return Comparison(
        name="gate",
        what="planted regressions, as `ajuste gate` measures them, with the functions that it names",
        unit="%",
        figures=figures,
        goal=f"{proved} of {whole} regressions are proved, {named} causes are named; goal: all, exit code 3",
        reached=proved == named == whole and gate.code == 3,
    )


def _equal(repeats: int, minutes: float = math.inf) -> Comparison:
    """Gates of equal revisions, by turns on two homes, each measured anew; as many as begin within the time."""
    end = time.monotonic() + 60 * minutes
    alarms: dict[str, list[float]] = {}
    digests, figures = set(), set()
    with _project() as directory:
        _commit(directory, planted=False)
        for _ in range(repeats):
            if time.monotonic() > end:
                break
            for place in ("one home", "another home"):
                gate = _gate(directory, directory.parent / place, "--fresh", _EQUAL)
                (only,) = gate.document["benchmarks"]
                alarms.setdefault(place, []).append(float(gate.code != 0))
                digests.add(only["digest"])
                figures.add((only["base"], only["head"]))
    same = len(digests) == len(figures) == 1
    return Comparison(
        name="gate-equal",
        what=f"alarms of {sum(map(len, alarms.values()))} gates of equal revisions",
        unit="alarms",
        figures=alarms,
        goal=f"no alarm, one digest and one pair of figures on both homes ({len(digests)} and {len(figures)})",
        reached=same and not any(map(sum, alarms.values())),
    )


def _again(times: int) -> tuple[Comparison, Comparison]:
    """After the first time: each time with a head that nobody has measured."""
    seconds, cpu_seconds = [], []
    with _project() as directory:
        _gate(directory, directory.parent / "home", _EQUAL)
        for number in range(times):
            (directory / "planted.h").write_text(f"#define PLANTED 0\n#define NUMBER {number}\nint own = NUMBER;\n")
            before = _cpu_seconds()
            seconds.append(_gate(directory, directory.parent / "home", _EQUAL).seconds)
            cpu_seconds.append(_cpu_seconds() - before)
    what = "a gate of a small program in a guest, after the first time, with a new head"
    goal = f"less than {LONGEST_SECONDS:g} s each"
    return (
        Comparison(
            name="gate-time",
            what=what,
            unit="s",
            figures={"ajuste gate": seconds},
            goal=goal,
            reached=max(seconds) < LONGEST_SECONDS,
        ),
        Comparison(
            name="gate-time-cpu",
            what=f"{what}, in CPU time, which other programs disturb less",
            unit="s",
            figures={"ajuste gate": cpu_seconds},
            goal=goal,
            reached=max(cpu_seconds) < LONGEST_SECONDS,
        ),
    )


def _cpu_seconds() -> float:
    """Return the CPU time of all commands that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def _project() -> Iterator[Path]:
    """A repository with the five jobs as they are without any regression."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / "project"
        directory.mkdir()
        for name in ("job.c", "ajuste.toml"):
            shutil.copy(_SOURCES / name, directory)
        _git(directory, "init", "--quiet")
        _commit(directory, planted=False)
        yield directory


def _commit(directory: Path, *, planted: bool) -> None:
    (directory / "planted.h").write_text(f"#define PLANTED {int(planted)}\n")
    _git(directory, "add", ".")
    _git(directory, "commit", "--quiet", "--allow-empty", "-m", "planted" if planted else "as it was")


def _git(directory: Path, *words: str) -> None:
    identity = ("-c", "user.name=benchmark", "-c", "user.email=benchmark@example.org")
    subprocess.run(["git", *identity, *words], cwd=directory, check=True)


def _gate(directory: Path, place: Path, *words: str) -> GateResult:
    """Against the commit before, or the only one."""
    if not place.exists():
        _make_home(place)
    count = subprocess.run(
        ["git", "rev-list", "--count", "HEAD"], cwd=directory, check=True, stdout=subprocess.PIPE, text=True
    )
    base = "HEAD~1" if int(count.stdout) > 1 else "HEAD"
    began = time.monotonic()
    done = subprocess.run(
        [_AJUSTE, "gate", "--base", base, "--json", *words],
        cwd=directory,
        env=_environment(place),
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    return GateResult(json.loads(done.stdout), done.returncode, time.monotonic() - began)


def _make_home(place: Path) -> None:
    """A home that has what this user fetched, and boots its own machines."""
    (place / "cache").mkdir(parents=True)
    for cached in home().cache.glob("*"):
        if cached != home().booted:
            (place / "cache" / cached.name).symlink_to(cached)


def _environment(place: Path) -> dict[str, str]:
    """Return the environment of an installed Ajuste: compiled once. Compiling takes 2 to 3 s a time."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**environment, "AJUSTE_HOME": str(place), "PYTHONPYCACHEPREFIX": str(place.parent / "bytecode")}


def main() -> None:
    """``--repeats N`` and ``--times N`` instead of those of ``make bench``; ``--minutes N``: only gates of equal
    revisions, as many as fit into that time and ``--repeats``.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--times", type=int, default=TIMES)
    parser.add_argument("--minutes", type=float)
    options = parser.parse_args()
    only_equal = options.minutes is not None
    for comparison in (
        (_equal(options.repeats, options.minutes),) if only_equal else measure(options.repeats, options.times)
    ):
        print(comparison.what, comparison.figures, comparison.goal, sep="\n")
        if not comparison.reached:
            raise SystemExit(1)

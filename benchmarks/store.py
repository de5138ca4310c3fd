"""A store of 10,000 runs: how long it takes to list them. ``python -m benchmarks store``.

Beside it what the command line takes to list nothing (``ajuste --version``): the rest is the list's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median

from ajuste.store.checks import canonical
from ajuste.store.engine import open_database
from ajuste.store.head import Head
from ajuste.store.runs import count_runs
from ajuste.store.schema import DOCUMENTS, RUNS, STUDY, keep, sealed
from benchmarks.comparison import Comparison, by_turns, seconds

MOST_RUNS = 10_000
ROUNDS = 5
GOAL_SECONDS = 0.6
_ANSWER = "Use 75 ms or more: it cuts involuntary context switches from 172 to 14 (−92 %). All three levels differ."
_RESOLVED = "{" + " " * 20_000 + "}"
"""Text as long as the study of a run."""


def make(file: Path, count: int = MOST_RUNS) -> None:
    """A store of so many runs, as the store itself would keep them one by one."""
    study = canonical({"named": "study.toml", "resolved": _RESOLVED, "environment": {}, "stopped_because": "decided"})
    with closing(open_database(f"sqlite:///{file}")) as database, database.writing() as connection:
        heads = [_head(number) for number in range(1, count + 1)]
        keep(connection, RUNS, [sealed(*head[:-1]) for head in heads])
        keep(connection, DOCUMENTS, [sealed(head.id, STUDY, "", study) for head in heads])
        count_runs(connection, count)


def _head(number: int) -> Head:
    return Head(
        id=f"20261122-163035-{number:06x}",
        study=f"study-{number % 50}",
        fingerprint=f"{number:064x}",
        seed=1,
        created=f"2026-11-22T16:30:{number % 60:02}+00:00",
        ajuste="0.1.0",
        begun=number,
        taken_up=number,
        base="",
        deleted=False,
        stopped="decided",
        kernel="debian:5.10",
        workload="matrix",
        answer=_ANSWER,
        tags="kept" if number % 100 == 0 else "",
        size_bytes=40_000,
        trials=0,
        total=0,
        recorded=0,
        check=0,
    )


def measure() -> tuple[Comparison, ...]:
    commands = {
        "all runs": ["report"],
        "all runs as JSON": ["report", "--json"],
        "those with a tag": ["report", "--tag", "kept"],
        "no list (--version)": ["--version"],
    }
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "data" / "store.sqlite"
        file.parent.mkdir()
        make(file)
        ajuste = Path(sys.executable).with_name("ajuste")
        environment = {**os.environ, "AJUSTE_HOME": home, "AJUSTE_STORE": ""}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # Else every start compiles the whole program again.

        def once(words: list[str]) -> float:
            return seconds(lambda: subprocess.run([ajuste, *words], env=environment, check=True, capture_output=True))

        figures = by_turns({name: partial(once, words) for name, words in commands.items()}, ROUNDS)
    comparison = Comparison(
        name="store",
        what=f"whole commands beside a store of {MOST_RUNS:,} runs",
        unit="s",
        figures=figures,
        goal=f"all runs are listed within {GOAL_SECONDS} s",
        reached=median(figures["all runs"]) <= GOAL_SECONDS,
    )
    return (comparison,)

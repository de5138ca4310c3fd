"""A store of 10,000 runs: how long it takes to list them. ``python -m benchmarks store``.

Beside it what the command line takes to list nothing (``ajuste --version``): the rest is the list's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

from ajuste.store.engine import open_database
from ajuste.store.schema import RunRow, put
from ajuste.store.tallies import RUNS, STORE, TRIALS, TrialTally, keep_tally, sealed
from benchmarks.comparison import Comparison, by_turns, seconds

MOST_RUNS = 10_000
ROUNDS = 5
GOAL_SECONDS = 0.5
_ANSWER = "Use 75 ms or more: it cuts involuntary context switches from 172 to 14 (−92 %). All three levels differ."
_RESOLVED = "{" + " " * 20_000 + "}"
"""As long as the study of a run."""


def make(file: Path, count: int = MOST_RUNS) -> None:
    """A store of so many runs, as the store itself would keep them one by one."""
    database = open_database(f"sqlite:///{file}")
    with database.transaction(writes=True) as transaction:
        counted = TrialTally()
        for number in range(1, count + 1):
            row = sealed(_row(number))
            put(transaction, row)
            keep_tally(transaction, row.id, TRIALS, TrialTally())
            counted = counted.plus([row.check])
        keep_tally(transaction, STORE, RUNS, counted)
    database.close()


def _row(number: int) -> RunRow:
    return RunRow(
        id=f"20261122-163035-{number:06x}",
        study=f"study-{number % 50}",
        fingerprint=f"{number:064x}",
        seed=1,
        created=f"2026-11-22T16:30:{number % 60:02}+00:00",
        ajuste="0.1.0",
        begun=number,
        taken_up=number,
        unverified_before=False,
        base="",
        deleted=False,
        stopped="decided",
        kernel="debian:5.10",
        workload="matrix",
        answer=_ANSWER,
        tags="kept" if number % 100 == 0 else "",
        size_bytes=40_000,
        named="study.toml",
        resolved=_RESOLVED,
        environment={},
        stopped_because="all verdicts decided after 3 blocks",
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
    found = Comparison(
        name="store",
        what=f"whole commands beside a store of {MOST_RUNS:,} runs",
        unit="s",
        figures=figures,
        goal=f"all runs are listed within {GOAL_SECONDS} s",
        reached=median(figures["all runs"]) <= GOAL_SECONDS,
    )
    return (found,)

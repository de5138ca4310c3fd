"""The overhead of Ajuste: 500 runs of ``true``, beside ``hyperfine -N``, by turns. ``python -m benchmarks overhead``.

Three figures each, of the same commands: what the command took as a whole, what the 500 runs took from the first to
the last, and the median run that it reports. The goal is for the whole. Hyperfine prints no span of its runs; theirs is
the sum of their times, which is less, so the comparison is in its favour.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import median

from ajuste.machine.files import locked
from ajuste.store.store import Store
from benchmarks.comparison import Comparison, by_turns, seconds
from benchmarks.kills import TESTS_LOCK

RUNS = 500
ROUNDS = 5
MOST_TIMES = 3
"""Multiple of hyperfine's time that the whole command may take: it has a report and all that Ajuste promises."""

_PARTS = ("", ", all runs", ", median run")


def measure() -> tuple[Comparison, ...]:
    durations: dict[str, list[tuple[float, ...]]] = {"ajuste": [], "hyperfine": []}

    def whole(name: str) -> float:
        durations[name].append(_ajuste() if name == "ajuste" else _hyperfine())
        return durations[name][-1][0]

    with locked(TESTS_LOCK):
        by_turns({name: partial(whole, name) for name in durations}, ROUNDS)
    figures = {
        f"{name}{part}": [round_of[place] for round_of in durations[name]]
        for place, part in enumerate(_PARTS)
        for name in durations
    }
    return (
        Comparison(
            name="overhead",
            what=f"{RUNS} runs of true",
            unit="ms",
            figures=figures,
            goal=f"at most {MOST_TIMES} times what hyperfine -N takes",
            reached=median(figures["ajuste"]) <= MOST_TIMES * median(figures["hyperfine"]),
        ),
    )


def _ajuste() -> tuple[float, ...]:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        ajuste = str(Path(sys.executable).with_name("ajuste"))
        command = [ajuste, "compare", "--blocks", str(RUNS), "--quiet", "--", "true"]
        environment = {**os.environ, "AJUSTE_HOME": directory}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # Else every start compiles the whole program again.
        whole = seconds(lambda: subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL))
        with Store(f"sqlite:///{root / 'data' / 'store.sqlite'}") as store:
            trials = store.trials(store.runs()[0])
    begins = [datetime.fromisoformat(trial.started).timestamp() for trial in trials]
    ends = [begin + trial.host_seconds for begin, trial in zip(begins, trials, strict=True)]
    return whole * 1e3, (max(ends) - min(begins)) * 1e3, median(trial.metrics["elapsed"] for trial in trials) * 1e3


def _hyperfine() -> tuple[float, ...]:
    program = shutil.which("hyperfine")
    if program is None:
        raise SystemExit("hyperfine is not on this machine: setup/system bench")
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "out.json"
        command = [program, "-N", "--runs", str(RUNS), "--export-json", str(out), "true"]
        whole = seconds(
            lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
        times = json.loads(out.read_text())["results"][0]["times"]
    return whole * 1e3, sum(times) * 1e3, median(times) * 1e3

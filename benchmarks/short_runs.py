"""500 runs of ``true``: Ajuste beside ``hyperfine -N``, by turns. ``python -m benchmarks short-runs``.

Three figures each, of the same commands: what the command took as a whole, what the 500 runs took from the first to
the last, and the median run that it reports. Hyperfine prints no span of its runs; theirs is the sum of their times,
which is less, so the comparison is in its favour.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from statistics import median

from ajuste.machine.files import locked
from ajuste.store.store import Store
from benchmarks.comparison import Comparison, by_turns, seconds
from benchmarks.kills import TESTS_LOCK

RUNS = 500
ROUNDS = 5
MOST_TIMES = {"whole command": 2.5, "all runs": 1.0, "median run": 1.0}
"""Multiple of hyperfine's time that each part may take: the whole has a report and all that Ajuste promises."""


def measure() -> tuple[Comparison, ...]:
    figures: dict[str, dict[str, list[float]]] = {part: {} for part in MOST_TIMES}
    spans: dict[str, list[tuple[float, ...]]] = {"ajuste": [], "hyperfine": []}

    def of(name: str) -> float:
        spans[name].append(_ajuste() if name == "ajuste" else _hyperfine())
        return spans[name][-1][0]

    with locked(TESTS_LOCK):
        by_turns({name: lambda name=name: of(name) for name in spans}, ROUNDS)  # type: ignore[misc]
    for name, durations in spans.items():
        for part, values in zip(MOST_TIMES, zip(*durations, strict=True), strict=True):
            figures[part][name] = list(values)
    return tuple(_comparison(part, figures[part]) for part in MOST_TIMES)


def _comparison(part: str, figures: dict[str, list[float]]) -> Comparison:
    return Comparison(
        name=f"short-runs-{part.replace(' ', '-')}",
        what=f"{RUNS} runs of true, {part}",
        unit="ms",
        figures=figures,
        goal=f"at most {MOST_TIMES[part]:g} times what hyperfine -N takes",
        reached=median(figures["ajuste"]) <= MOST_TIMES[part] * median(figures["hyperfine"]),
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

"""Real studies in guests beside the mean of many seeds: how many are wrong, and how many intervals hold it.

The question is that of the pool of ``benchmarks.verdicts.cases``: a few seeds show a large effect, most show none.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import numpy as np

from ajuste.model.verdict import Verdict
from benchmarks.comparison import Comparison
from benchmarks.place import share_fetched
from benchmarks.verdicts.cases import pools
from benchmarks.verdicts.cells import wilson

STUDIES: Final = 40
QUESTION: Final = "nice 0,1 on matrix"
MARGIN: Final = 0.02
METRIC: Final = "elapsed"
_COMPARE: Final = ("compare", "--vm", "--nice", "0,1", "--background", "spin", "--metric", METRIC, "--fresh")
_WORKLOAD: Final = ("--", "matrix", "size=50", "repetitions=1")
_FIRST_SEED: Final = 1_000


def measure(studies: int = STUDIES) -> tuple[Comparison, ...]:
    """Carry out ``studies`` with seeds of their own, in about 20 minutes of two CPUs."""
    truth = math.exp(float(np.mean(np.diff(pools()[QUESTION]))))
    with tempfile.TemporaryDirectory(prefix="ajuste-seeds-") as home, ThreadPoolExecutor(os.cpu_count()) as pool:
        share_fetched(Path(home) / "cache")
        environment = os.environ | {"AJUSTE_HOME": home}
        verdicts = list(pool.map(lambda number: _verdict(number, environment), range(studies)))
    wrong = sum(_is_wrong(verdict, truth) for verdict in verdicts)
    held = sum(_holds(verdict, truth) for verdict in verdicts)
    low, high = wilson(held, studies)
    words = Counter(verdict.verdict for verdict in verdicts)
    blocks = [verdict.blocks for verdict in verdicts]
    return (
        Comparison(
            name="seeds",
            what=f"effects of {studies} real studies of {QUESTION}; on average over 200 seeds it is {truth - 1:+.1%}",
            unit="%",
            figures={
                "effect": [100 * (verdict.estimate - 1) for verdict in verdicts if verdict.estimate is not None],
            },
            goal=(
                f"the interval holds it in {held} of {studies} ({low:.0%} to {high:.0%}), {wrong} wrong verdicts"
                f" ({', '.join(f'{count} {word}' for word, count in words.most_common())})"
                f" after {min(blocks)} to {max(blocks)} blocks"
            ),
            reached=held >= 0.95 * studies and wrong <= 0.05 * studies,
        ),
    )


def _verdict(number: int, environment: dict[str, str]) -> Verdict:
    command = (
        _ajuste(),
        *_COMPARE,
        "--seed",
        str(_FIRST_SEED + number),
        "--name",
        f"seeds-{number}",
        "--quiet",
        "--json",
    )
    done = subprocess.run((*command, *_WORKLOAD), capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"study {number}: {done.stderr}")
    verdicts = [Verdict.model_validate(verdict) for verdict in json.loads(done.stdout)["verdicts"]]
    return next(verdict for verdict in verdicts if verdict.metric == METRIC)


def _ajuste() -> str:
    return str(Path(sys.executable).with_name("ajuste"))


def _is_wrong(verdict: Verdict, truth: float) -> bool:
    """Return whether a verdict says another direction than the ``truth``, or that a larger one does not matter."""
    if verdict.verdict == "equivalent":
        return abs(truth - 1) > MARGIN
    return verdict.verdict == ("worsens" if truth < 1 else "improves")


def _holds(verdict: Verdict, truth: float) -> bool:
    low = -math.inf if verdict.low is None else verdict.low
    high = math.inf if verdict.high is None else verdict.high
    return low <= truth <= high

"""Rate of studies without any effect that ever report one, if somebody looks after every block."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from ajuste_stats.confidence_sequences import half_width
from benchmarks.comparison import Comparison

STUDIES = 20_000
MOST_BLOCKS = 60
ALPHA = 0.05


def measure() -> tuple[Comparison, ...]:
    """The ordinary t interval beside the anytime-valid one, on the same simulated differences (normal, mean 0)."""
    values = np.random.default_rng(1).standard_normal((STUDIES, MOST_BLOCKS))

    def ever_wrong(width: Callable[[int], float]) -> float:
        wrong = np.zeros(STUDIES, dtype=bool)
        for blocks in range(2, MOST_BLOCKS + 1):
            seen = values[:, :blocks]
            wrong |= np.abs(seen.mean(axis=1)) > width(blocks) * seen.std(axis=1)
        return 100 * float(wrong.mean())

    figures = {
        "ajuste": [ever_wrong(lambda n: half_width(n, 1.0, ALPHA))],
        "ordinary t interval": [ever_wrong(lambda n: float(stats.t.ppf(1 - ALPHA / 2, n - 1)) / math.sqrt(n - 1))],
    }
    return (
        Comparison(
            name="coverage",
            what=f"{STUDIES} studies without effect, looked at after every block up to the {MOST_BLOCKS}th: ever wrong",
            unit="%",
            figures=figures,
            goal=f"at most {100 * ALPHA:g} %",
            reached=figures["ajuste"][0] <= 100 * ALPHA,
        ),
    )

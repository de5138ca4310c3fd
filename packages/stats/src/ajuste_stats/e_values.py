"""E-values: evidence that is at most 1 on average where there is no improvement, and error budgets over many of them.

For pairs whose improvements are normal with unknown variance an e-value is the mixture behind the intervals of
``confidence_sequences``, which is at least 1/α exactly where the interval of error rate α excludes zero. It is taken
twice where the estimate is an improvement, and 0 where it is not. By symmetry its mean is 1 where nothing changes;
where things get worse it is smaller, since the distribution of t only moves down. That holds for a number of pairs that
was fixed beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste_stats.confidence_sequences import MIXTURE, Interval

LARGEST: Final = 1e300
"""JSON has no infinity."""

FEWEST_PAIRS: Final = 5


def mixture_log_value(
    n: NDArray[np.float64], mean: NDArray[np.float64], variance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the logarithm of the two-sided mixture for ``n`` values of that mean and biased variance."""
    n, mean, variance = (np.asarray(figure, np.float64) for figure in (n, mean, variance))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(mean == 0, 0.0, mean**2 / (variance + mean**2))
        logarithm = 0.5 * np.log(MIXTURE / (n + MIXTURE)) - n / 2 * np.log1p(-n / (n + MIXTURE) * share)
    return np.asarray(logarithm, np.float64)


def improvement_log_value(
    n: NDArray[np.float64], improvement: NDArray[np.float64], variance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the logarithm of the e-value of an improvement; ``improvement`` is above 0 where things got better."""
    logarithm = mixture_log_value(n, improvement, variance) + math.log(2)
    return np.where(np.asarray(improvement) > 0, logarithm, -np.inf)


def improvement_value(interval: Interval, direction: str) -> float:
    """Return the e-value of an improvement from the ``interval`` of a change; ``direction`` says what is better."""
    if interval.n < FEWEST_PAIRS or not math.isfinite(interval.variance):
        return 0.0
    sign = 1.0 if direction == "higher" else -1.0
    values = (np.array([figure]) for figure in (float(interval.n), sign * interval.mean, interval.variance))
    logarithm = float(improvement_log_value(*values)[0])
    return min(LARGEST, math.exp(min(logarithm, math.log(LARGEST))))


@dataclass(frozen=True)
class ErrorBudget:
    """The error budget over all tests in a row: a false discovery rate ``alpha`` over up to ``tests``.

    e-LOND (Xu and Ramdas 2024, "Online multiple testing with e-values", AISTATS, arXiv:2311.06412): the test of number
    t rejects where its e-value is at least 1/α_t, with α_t = α·γ_t·(rejections before + 1). The false discovery rate is
    at most α, however e-values depend on each other and on what was proposed because of them: each needs a mean of at
    most 1 given all before it. How many tests there may be is said beforehand, and γ_t is an equal share for
    each.
    """

    alpha: float
    tests: int

    def level(self, tested: int, promoted: int) -> float:
        """Return the level of the next test after ``tested`` ones with ``promoted`` promotions; 0 if all is spent."""
        return self.alpha / self.tests * (promoted + 1) if tested < self.tests else 0.0

    def promoted(self, e_values: Iterable[float]) -> list[bool]:
        """Return for each test in a row whether it is a promotion."""
        promotions: list[bool] = []
        for value in e_values:
            level = self.level(len(promotions), sum(promotions))
            promotions.append(is_promoted(value, level))
        return promotions


def is_promoted(e_value: float, level: float) -> bool:
    """Return whether the evidence is enough at that level."""
    return level > 0 and e_value * level >= 1

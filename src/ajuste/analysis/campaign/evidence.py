"""Evidence of an improvement as an e-value: a figure that is at most 1 on average where there is none.

For pairs whose improvements are normal with unknown variance: the mixture behind the intervals of
``analysis.sequence``, which is at least 1/α exactly where the interval of error rate α excludes zero. It is taken twice
where the estimate is an improvement, and 0 where it is not. By symmetry its mean is 1 where nothing changes; where
things get worse it is smaller, since the distribution of t only moves down. That holds for a number of pairs that was
fixed beforehand. docs/explanation/campaigns.md says what follows.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.effects import effect
from ajuste.analysis.pairs import Clean, pairs
from ajuste.analysis.sequence import MIXTURE, Interval
from ajuste.model.metric import Metric

LARGEST: Final = 1e300
"""JSON has no infinity."""

FEWEST_PAIRS: Final = 5


def mixture_log_value(
    n: NDArray[np.float64], mean: NDArray[np.float64], variance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The logarithm of the two-sided mixture for ``n`` values of that mean and biased variance."""
    n, mean, variance = (np.asarray(one, np.float64) for one in (n, mean, variance))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(mean == 0, 0.0, mean**2 / (variance + mean**2))
        found = 0.5 * np.log(MIXTURE / (n + MIXTURE)) - n / 2 * np.log1p(-n / (n + MIXTURE) * share)
    return np.asarray(found, np.float64)


def improvement_log_value(
    n: NDArray[np.float64], improvement: NDArray[np.float64], variance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The logarithm of the e-value of an improvement; ``improvement`` is above 0 where things got better."""
    found = mixture_log_value(n, improvement, variance) + math.log(2)
    return np.where(np.asarray(improvement) > 0, found, -np.inf)


def improvement_value(interval: Interval, direction: str) -> float:
    """The e-value of an improvement from the interval of a change, whose ``direction`` says what is better."""
    if interval.n < FEWEST_PAIRS or not math.isfinite(interval.half_width):
        return 0.0
    sign = 1.0 if direction == "higher" else -1.0
    values = (np.array([one]) for one in (float(interval.n), sign * interval.mean, interval.variance))
    logarithm = float(improvement_log_value(*values)[0])
    return min(LARGEST, math.exp(min(logarithm, math.log(LARGEST))))


def evidence(clean: Clean, baseline: str, other: str, metric: Metric, *, order_matters: bool) -> float:
    """The e-value that ``other`` improves ``metric``, from all clean pairs; 0 without enough of them."""
    both = pairs(clean, baseline, other, metric.column, order_matters=order_matters)
    found = effect(both, metric, 0.05)
    return 0.0 if found is None else improvement_value(found.interval, metric.direction)

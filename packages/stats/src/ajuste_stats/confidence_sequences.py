"""Confidence sequences, for a mean and for a quantile: intervals that hold at all sample sizes at once.

The mean is that of independent normal values of unknown mean and variance, with the scale-invariant Gaussian mixture of
Lai (1976, "On confidence sequences", Annals of Statistics 4) in the form of Wang and Ramdas (2023, "Anytime-valid
t-tests and confidence sequences for Gaussian means with unknown variance", arXiv:2310.03722).
docs/explanation/statistics.md derives it.

The quantile is that of values of any distribution, after Howard and Ramdas (2022, "Sequential estimation of quantiles
with applications to A/B testing and best-arm identification", Bernoulli 28(3)): how many of n independent values lie
below the p-quantile is a random walk with steps of probability p, whatever the distribution, so bounds for that walk
give order statistics as bounds for the quantile. The bounds for the walk are those of the mixture of Robbins (1970,
"Statistical methods related to the law of the iterated logarithm", Annals of Mathematical Statistics 41(5)): with k
steps of n the evidence against p is B(a + k, b + n − k) / (B(a, b) pᵏ (1 − p)ⁿ⁻ᵏ), a martingale that starts at 1; a = p
and b = 1 − p here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

MIXTURE: Final = 0.1
"""c²: the prior precision of the mean in standard deviations. 0.1 is close to the narrowest from 4 to 30 values for
error rates from 5 % down to 0.1 %; any fixed value is valid."""


@dataclass(frozen=True)
class Interval:
    """Interval from ``low`` to ``high``: ``mean`` ± ``half_width`` of ``n`` values; infinite while these are few.

    ``variance`` is the biased one (divided by ``n``), with its floor applied.
    """

    n: int
    mean: float
    variance: float
    half_width: float

    @property
    def low(self) -> float:
        """Return the lower end."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Return the upper end."""
        return self.mean + self.half_width


def half_width(n: int, variance: float, alpha: float) -> float:
    """Return half the width of the interval for the mean of ``n`` values whose biased variance is ``variance``.

    With probability at least 1 − ``alpha`` the intervals of all n hold together. Infinite where n is too small.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}; expected 0 < alpha < 1")
    if n < 1 or variance < 0:
        raise ValueError(f"n is {n} and variance {variance}; expected n ≥ 1 and variance ≥ 0")
    precision = n + MIXTURE
    log_k = math.log(alpha * alpha * MIXTURE / precision) / n
    room = math.exp(log_k) * precision - MIXTURE
    if room <= 0:
        return math.inf
    return math.sqrt(precision * -math.expm1(log_k) * variance / room)


def mixture_half_width(
    n: NDArray[np.float64], variance: NDArray[np.float64], freedom: NDArray[np.float64], alpha: float
) -> NDArray[np.float64]:
    """Return ``half_width`` for means of ``n`` values whose unbiased ``variance`` has ``freedom`` degrees of freedom.

    These may come from more values than these ``n``: the same mixture in a linear model (Lindon, Ham, Tingley and
    Bojinov 2022, "Anytime-valid linear models and regression adjusted causal inference", arXiv:2210.08589).
    """
    share = MIXTURE / (n + MIXTURE)
    factor = np.exp(-2 / (freedom + 1) * (math.log(alpha) + 0.5 * np.log(share)))
    room = 1 - share * factor
    with np.errstate(divide="ignore", invalid="ignore"):
        half = np.sqrt(freedom * (factor - 1) / room * variance / n)
    return np.where((room > 0) & (n > 0), half, np.inf)


def fewest(alpha: float) -> int:
    """Return the smallest number of values that gives a finite interval."""
    n = 1
    while math.isinf(half_width(n, 1.0, alpha)):
        n += 1
    return n


def mean_interval(values: NDArray[np.float64], *, alpha: float, floor: float = 0.0) -> Interval:
    """Return the interval for the mean of ``values``; those of all numbers of values hold together, but for ``alpha``.

    ``floor`` is the least variance that is believed (from the resolution of the figures), so that a few identical
    values are not taken for certainty.
    """
    mean = float(np.mean(values))
    variance = max(float(np.var(values)), floor)
    return Interval(len(values), mean, variance, half_width(len(values), variance, alpha))


def values_needed(variance: float, wanted: float, alpha: float, *, most: int) -> int | None:
    """Return how many values make the half width smaller than ``wanted`` at this variance; ``None`` beyond ``most``."""
    low, high = 0, fewest(alpha)
    while half_width(high, variance, alpha) >= wanted:
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        if half_width(middle, variance, alpha) < wanted:
            high = middle
        else:
            low = middle
    return high


MOST_VALUES = 1_000_000
"""The limit of ``fewest_for``."""


@dataclass(frozen=True)
class BoundedInterval(Interval):
    """``mean`` is the estimate, ``below`` and ``above`` its bounds; ``half_width`` the distance to the further one."""

    below: float
    above: float

    @property
    def low(self) -> float:
        return self.below

    @property
    def high(self) -> float:
        return self.above


def interval_between(
    n: int, estimate: float, below: float, above: float, variance: float = math.nan
) -> BoundedInterval:
    """Return the interval from ``below`` to ``above`` around ``estimate``."""
    return BoundedInterval(n, estimate, variance, max(above - estimate, estimate - below), below, above)


def widened(interval: Interval, error: float) -> Interval:
    """Return ``interval`` with ``error`` more to each side, for what no number of values tells."""
    low, high = interval.low - error, interval.high + error
    return interval_between(interval.n, interval.mean, low, high, interval.variance)


def log_evidence(k: NDArray[np.float64], n: NDArray[np.float64], p: float) -> NDArray[np.float64]:
    """Return the log of the evidence against probability ``p`` after ``k`` of ``n`` values."""
    mixed = scipy.special.betaln(p + k, 1 - p + n - k) - scipy.special.betaln(p, 1 - p)
    return np.asarray(mixed - k * math.log(p) - (n - k) * math.log1p(-p))


@lru_cache(maxsize=4096)
def count_bounds(n: int, p: float, alpha: float) -> tuple[int, int]:
    """Return the least and the largest number of ``n`` values below their ``p``-quantile that are not refuted."""
    if not 0 < alpha < 1 or not 0 < p < 1 or n < 1:
        raise ValueError(f"n is {n}, p {p} and alpha {alpha}; expected n ≥ 1 and both between 0 and 1")
    k = np.arange(n + 1.0)
    accepted = np.flatnonzero(log_evidence(k, np.full(n + 1, float(n)), p) < -math.log(alpha))
    return int(accepted[0]), int(accepted[-1])


def fewest_for(p: float, alpha: float) -> int | None:
    """Return the fewest values that bound the ``p``-quantile on both sides; ``None`` beyond ``MOST_VALUES``."""
    n = np.unique(np.geomspace(1, MOST_VALUES, 20_000).astype(np.int64)).astype(np.float64)
    weaker = np.minimum(log_evidence(np.zeros_like(n), n, p), log_evidence(n, n, p))
    enough = np.flatnonzero(weaker >= -math.log(alpha))
    return int(n[enough[0]]) if len(enough) else None


def quantile_bounds(values: NDArray[np.float64], p: float, alpha: float) -> tuple[float, float]:
    """Return bounds for the ``p``-quantile of ``values``: those after 1, 2, 3 … values all hold, but for ``alpha``.

    They are values themselves (order statistics), or infinite where too few are known. Of values that are equal only
    those strictly beyond count, so that the bounds hold for distributions with atoms too.
    """
    n = len(values)
    least, most = count_bounds(n, p, alpha)
    ordered = np.concatenate([[-np.inf], np.sort(values), [np.inf]])
    return float(ordered[least]), float(ordered[most + 1])

"""Samples of fixed size, at which nobody looks again after each further value: t tests, and the power of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FixedContrast:
    """A difference of two means of fixed-size data, with its standard error and the degrees of freedom of its t.

    Such data were measured elsewhere: nobody looks again after each further value. Where the blocks are known,
    Student's t of the paired differences (Student 1908, "The probable error of a mean", Biometrika 6); otherwise
    Welch's t with the degrees of freedom of Satterthwaite (Welch 1947, "The generalization of 'Student's' problem when
    several different population variances are involved", Biometrika 34; Satterthwaite 1946). Ratios are compared as
    differences of logarithms. ``error`` is NaN where there are too few values to know it.
    """

    difference: float
    error: float
    freedom: float

    def half_width(self, alpha: float) -> float:
        """Return half the width of the two-sided interval of confidence 1 − ``alpha``; infinite if unknown."""
        if not math.isfinite(self.error) or self.freedom <= 0:
            return math.inf
        return self.error * scipy.special.stdtrit(self.freedom, 1 - alpha / 2) if self.error > 0 else 0.0

    @property
    def p_value(self) -> float:
        """Return the two-sided p-value of no difference; NaN if unknown."""
        if not math.isfinite(self.error) or self.freedom <= 0:
            return math.nan
        if self.error == 0:
            return 1.0 if self.difference == 0 else 0.0
        return float(2 * scipy.special.stdtr(self.freedom, -abs(self.difference) / self.error))


def paired(baseline: Array, other: Array) -> FixedContrast:
    """Contrast values that belong together pair by pair; arrays of equal length, at least 1."""
    difference, error, n = moments(other - baseline)
    return FixedContrast(difference, error, n - 1)


def unpaired(baseline: Array, other: Array) -> FixedContrast:
    """Contrast two samples without pairs, whose variances need not be equal; each has at least 1 value."""
    return mean_contrast(*moments(baseline), *moments(other))


def moments(values: Array) -> tuple[float, float, int]:
    """Return the mean, its standard error (NaN below two values), and the number of values."""
    n = len(values)
    sem = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return float(np.mean(values)), sem, n


def mean_contrast(mean: float, sem: float, n: int, other_mean: float, other_sem: float, other_n: int) -> FixedContrast:
    """Contrast two means whose standard errors are ``sem`` and ``other_sem``, from ``n`` and ``other_n`` values."""
    difference = other_mean - mean
    if n < 2 or other_n < 2:
        return FixedContrast(difference, math.nan, 0.0)
    error = math.hypot(sem, other_sem)
    if error == 0:
        return FixedContrast(difference, 0.0, n + other_n - 2)
    # as shares of the whole, which neither overflow nor vanish
    share = (sem / error) ** 2
    freedom = 1 / (share**2 / (n - 1) + (1 - share) ** 2 / (other_n - 1))
    return FixedContrast(difference, error, freedom)


def log_mean_contrast(
    mean: float, sem: float, n: int, other_mean: float, other_sem: float, other_n: int
) -> FixedContrast:
    """Contrast the logarithms of two positive means, by the delta method.

    The relative standard error of a mean is about the standard error of its logarithm (Oehlert 1992, "A note on the
    delta method", The American Statistician 46).
    """
    return mean_contrast(math.log(mean), sem / mean, n, math.log(other_mean), other_sem / other_mean, other_n)


POWER: Final = 0.9
MOST_VALUES: Final = 1_000_000
"""Beyond this many values a prediction is not worth giving."""


def values_needed(difference: float, spreads: tuple[float, ...], alpha: float, power: float = POWER) -> int | None:
    """Return how many values of each sample tell ``difference`` from none with this ``power``, two-sided at ``alpha``.

    ``spreads`` are the standard deviations of the two samples, or the one of paired differences, in the unit of
    ``difference``. ``None`` beyond ``MOST_VALUES``. By the power of the t test: Cohen 1988, "Statistical Power Analysis
    for the Behavioral Sciences", 2nd ed., section 2.4; exact by the noncentral t distribution (Johnson and Welch 1940,
    "Applications of the non-central t-distribution", Biometrika 31).
    """
    variance = math.fsum(spread**2 for spread in spreads)
    if difference == 0 or variance == 0:
        return None
    z = scipy.special.ndtri(1 - alpha / 2) + scipy.special.ndtri(power)
    normal = float(variance * (z / difference) ** 2)  # what it would take were the spread known
    if normal > MOST_VALUES:
        return None
    share = variance**2 / math.fsum(spread**4 for spread in spreads)
    n = max(2, math.floor(normal))
    while _power(difference, variance, share * (n - 1), n, alpha) < power:
        n += 1
    return n


def _power(difference: float, variance: float, freedom: float, n: int, alpha: float) -> float:
    apart = abs(difference) / math.sqrt(variance / n)
    critical = scipy.special.stdtrit(freedom, 1 - alpha / 2)
    return float(1 - scipy.special.nctdtr(freedom, apart, critical))

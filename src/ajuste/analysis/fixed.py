"""Intervals for data of fixed size, which were measured elsewhere: nobody looks at them again after each further value.

Where the blocks are known, Student's t of the paired differences (Student 1908, "The probable error of a mean",
Biometrika 6); otherwise Welch's t with the degrees of freedom of Satterthwaite (Welch 1947, "The generalization of
'Student's' problem when several different population variances are involved", Biometrika 34; Satterthwaite 1946).
Ratios are compared as differences of logarithms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Contrast:
    """A difference of two means (or of the means of logarithms), with the standard error of that difference and the
    degrees of freedom of its t distribution. ``error`` is NaN where there are too few values to know it.
    """

    difference: float
    error: float
    freedom: float

    def half_width(self, alpha: float) -> float:
        """Half the width of the two-sided interval of confidence 1 − ``alpha``; infinite where nothing can be said."""
        if not math.isfinite(self.error) or self.freedom <= 0:
            return math.inf
        return self.error * float(stdtrit(self.freedom, 1 - alpha / 2)) if self.error > 0 else 0.0

    @property
    def p_value(self) -> float:
        """Two-sided, of no difference; NaN where nothing can be said."""
        if not math.isfinite(self.error) or self.freedom <= 0:
            return math.nan
        if self.error == 0:
            return 1.0 if self.difference == 0 else 0.0
        return float(2 * stdtr(self.freedom, -abs(self.difference) / self.error))


def paired(baseline: Array, other: Array) -> Contrast:
    """Of values that belong together pair by pair; arrays of equal length, at least 1."""
    differences = other - baseline
    n = len(differences)
    error = float(np.std(differences, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return Contrast(float(np.mean(differences)), error, n - 1)


def unpaired(baseline: Array, other: Array) -> Contrast:
    """Of two samples without pairs, whose variances need not be equal; each has at least 1 value."""
    return of_means(*_moments(baseline), *_moments(other))


def _moments(values: Array) -> tuple[float, float, int]:
    n = len(values)
    sem = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return float(np.mean(values)), sem, n


def of_means(mean: float, sem: float, n: int, other_mean: float, other_sem: float, other_n: int) -> Contrast:
    """Of two means whose standard errors are ``sem`` and ``other_sem``, from ``n`` and ``other_n`` values."""
    difference = other_mean - mean
    if n < 2 or other_n < 2:
        return Contrast(difference, math.nan, 0.0)
    error = math.hypot(sem, other_sem)
    if error == 0:
        return Contrast(difference, 0.0, n + other_n - 2)
    # As shares of the whole, which neither overflow nor vanish.
    share = (sem / error) ** 2
    freedom = 1 / (share**2 / (n - 1) + (1 - share) ** 2 / (other_n - 1))
    return Contrast(difference, error, freedom)


def of_log_means(mean: float, sem: float, n: int, other_mean: float, other_sem: float, other_n: int) -> Contrast:
    """Of the logarithms of two positive means, by the delta method: the relative standard error of a mean is about the
    standard error of its logarithm (Oehlert 1992, "A note on the delta method", The American Statistician 46).
    """
    return of_means(math.log(mean), sem / mean, n, math.log(other_mean), other_sem / other_mean, other_n)

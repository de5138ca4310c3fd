"""Heterogeneity: whether several groups have one mean, with equal or unequal noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray


def equality_p_value(samples: Sequence[NDArray[np.float64]]) -> float | None:
    """Return the p-value of equal means; ``None`` where a sample does not show its spread."""
    if len(samples) < 2 or any(len(sample) < 2 or np.ptp(sample) == 0 for sample in samples):
        return None
    # Alexander and Govern (1994), "A new and simpler approximation for ANOVA under variance heterogeneity", Journal of
    # Educational Statistics 19: each mean's t against the weighted one, made normal (Hill 1970, algorithm 395).
    averages = np.array([np.mean(sample) for sample in samples])
    freedom = np.array([len(sample) - 1.0 for sample in samples])
    errors = np.array([np.std(sample, ddof=1) / math.sqrt(len(sample)) for sample in samples])
    t = (averages - np.average(averages, weights=errors**-2.0)) / errors
    a = freedom - 0.5
    b = 48 * a**2
    c = np.sqrt(a * np.log1p(t**2 / freedom))
    z = c + (c**3 + 3 * c) / b - (4 * c**7 + 33 * c**5 + 240 * c**3 + 855 * c) / (b * (10 * b + 8 * c**4 + 1000))
    p_value = max(
        scipy.special.chdtrc(len(samples) - 1, float(np.sum(z**2))), _brown_forsythe(averages, freedom + 1, errors)
    )
    return None if math.isnan(p_value) else p_value


def _brown_forsythe(means: NDArray[np.float64], sizes: NDArray[np.float64], errors: NDArray[np.float64]) -> float:
    # Brown and Forsythe's F* with both degrees of freedom of Mehrotra (1997).
    variances, total = errors**2 * sizes, float(np.sum(sizes))
    between = float(np.sum(sizes * (means - np.average(means, weights=sizes)) ** 2))
    shares = (1 - sizes / total) * variances
    within = float(np.sum(shares))
    above = float(
        np.sum(variances**2) + np.sum(sizes * variances / total) ** 2 - 2 * np.sum(sizes * variances**2 / total)
    )
    return float(scipy.special.fdtrc(within**2 / above, within**2 / np.sum(shares**2 / (sizes - 1)), between / within))


def variance_between(values: NDArray[np.float64], groups: NDArray[np.int64]) -> tuple[float, NDArray[np.float64]]:
    """Return the p-value of the F test that all groups have one mean, and each mean's distance from that of all."""
    counts = np.bincount(groups).astype(np.float64)
    averages = np.bincount(groups, values) / counts
    effects = averages - values.mean()
    between = float(np.sum(counts * effects**2)) / (len(counts) - 1)
    within = float(np.sum((values - averages[groups]) ** 2)) / (len(values) - len(counts))
    if within == 0:
        return (0.0 if between else 1.0), effects
    return scipy.special.fdtrc(len(counts) - 1, len(values) - len(counts), between / within), effects

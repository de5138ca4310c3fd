"""Ranks of values, and what they say of two samples. ``scipy.stats`` has them too, but takes longer to load than most
analyses take.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEWEST_RANKED: Final = 8


def ranks(values: Array) -> Array:
    """Return the ranks of ``values`` from 1 on; equal ones share the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[places])


def rank_p_value(first: Array, second: Array) -> float:
    """Return the two-sided p-value of equal ranks; 1 below ``FEWEST_RANKED`` values of either.

    Mann and Whitney 1947, "On a test of whether one of two random variables is stochastically larger than the other",
    Annals of Mathematical Statistics 18: the normal approximation, corrected for ties and for continuity.
    """
    m, n = len(first), len(second)
    if min(m, n) < FEWEST_RANKED:
        return 1.0
    ranked = ranks(np.concatenate([first, second]))
    away = abs(float(np.sum(ranked[:m])) - m * (m + n + 1) / 2)
    variance = m * n / (m + n) * float(np.var(ranked, ddof=1))  # ties make it smaller
    return float(2 * scipy.special.ndtr(-max(away - 0.5, 0.0) / math.sqrt(variance))) if variance > 0 else 1.0


def rank_correlation(first: Array, second: Array) -> float:
    """Return Spearman's ρ; equal values share their mean rank."""
    return float(np.corrcoef(ranks(first), ranks(second))[0, 1])


def correlation_interval(rho: float, n: int, alpha: float) -> tuple[float, float]:
    """Return the interval of error rate ``alpha``; ``n`` above 3.

    That of Bonett and Wright (2000, "Sample size requirements for estimating Pearson, Kendall and Spearman
    correlations", Psychometrika 65): Fisher's z with the standard error √((1 + ρ²/2)/(n − 3)). A perfect correlation
    counts as half a swap of neighbours less.
    """
    most = 1 - 6 / (n * (n * n - 1))
    held = min(max(rho, -most), most)
    half = scipy.special.ndtri(1 - alpha / 2) * math.sqrt((1 + held**2 / 2) / (n - 3))
    return min(rho, math.tanh(math.atanh(held) - half)), max(rho, math.tanh(math.atanh(held) + half))

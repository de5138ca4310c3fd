"""Which metrics go along with which over the configurations of a study: Spearman's rank correlation.

The interval is that of Bonett and Wright (2000, "Sample size requirements for estimating Pearson, Kendall and Spearman
correlations", Psychometrika 65): Fisher's z with the standard error √((1 + ρ²/2)/(n − 3)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ajuste.model.metric import Metric
from ajuste.model.results import Measured
from ajuste.model.surface import Correlation

FEWEST: Final = 6
"""Configurations: of less a rank correlation tells nothing."""


def correlations(
    configurations: Sequence[Measured], deciding: Sequence[Metric], metrics: Sequence[Metric], confidence: float
) -> tuple[Correlation, ...]:
    """Of each of ``deciding`` with each other one of ``metrics``, the strongest first; those that do not vary have
    none.
    """
    found: list[Correlation] = []
    for metric in deciding:
        own = [(other, _means(configurations, metric.name, other.name)) for other in metrics if other != metric]
        usable = [(other, one, two) for other, (one, two) in own if _varies(one) and _varies(two)]
        alpha = (1 - confidence) / max(1, len(usable))
        each = [_correlation(metric, other, one, two, confidence, alpha) for other, one, two in usable]
        found += sorted(each, key=lambda one: -abs(one.rho))
    return tuple(found)


def rank_correlation(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    """Spearman's ρ; equal values share their mean rank."""
    return float(np.corrcoef(_ranks(one), _ranks(two))[0, 1])


def interval(rho: float, n: int, alpha: float) -> tuple[float, float]:
    """Of error rate ``alpha``; ``n`` above 3. A perfect correlation is taken for half a swap of neighbours less."""
    most = 1 - 6 / (n * (n * n - 1))
    held = min(max(rho, -most), most)
    half = float(ndtri(1 - alpha / 2)) * math.sqrt((1 + held**2 / 2) / (n - 3))
    return min(rho, math.tanh(math.atanh(held) - half)), max(rho, math.tanh(math.atanh(held) + half))


def _means(configurations: Sequence[Measured], one: str, two: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    both = [c.metrics for c in configurations if one in c.metrics and two in c.metrics]
    return np.array([m[one].mean for m in both]), np.array([m[two].mean for m in both])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """From 1 on (``scipy.stats`` has them too, but takes longer to load than most analyses take)."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def _varies(values: NDArray[np.float64]) -> bool:
    return len(values) >= FEWEST and bool(np.ptp(values) > 0)


def _correlation(
    metric: Metric,
    other: Metric,
    one: NDArray[np.float64],
    two: NDArray[np.float64],
    confidence: float,
    alpha: float,
) -> Correlation:
    rho = rank_correlation(one, two)
    low, high = interval(rho, len(one), alpha)
    return Correlation(metric=metric.name, other=other.name, rho=rho, low=low, high=high, n=len(one), level=confidence)

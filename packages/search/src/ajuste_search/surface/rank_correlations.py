"""Rank correlations of metrics over the configurations of a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.model.metric import Metric
from ajuste.model.results import Measured
from ajuste.model.surface import Correlation
from ajuste_stats.ranks import correlation_interval, rank_correlation

FEWEST: Final = 6
"""Minimum number of configurations: of fewer a rank correlation tells nothing."""


def correlations(
    configurations: Sequence[Measured], deciding: Sequence[Metric], metrics: Sequence[Metric], confidence: float
) -> tuple[Correlation, ...]:
    """Return each of ``deciding`` with every other of ``metrics`` that varies, the strongest first."""
    strongest: list[Correlation] = []
    for metric in deciding:
        usable = []
        for other in metrics:
            if other == metric:
                continue
            both = [c.metrics for c in configurations if metric.name in c.metrics and other.name in c.metrics]
            first, second = (np.array([m[name].mean for m in both]) for name in (metric.name, other.name))
            if _varies(first) and _varies(second):
                usable.append((other.name, first, second))
        alpha = (1 - confidence) / max(1, len(usable))
        rows = []
        for name, first, second in usable:
            rho, n = rank_correlation(first, second), len(first)
            low, high = correlation_interval(rho, n, alpha)
            rows.append(Correlation(metric=metric.name, other=name, rho=rho, low=low, high=high, n=n, level=confidence))
        strongest += sorted(rows, key=lambda row: -abs(row.rho))
    return tuple(strongest)


def _varies(values: NDArray[np.float64]) -> bool:
    return len(values) >= FEWEST and bool(np.ptp(values) > 0)

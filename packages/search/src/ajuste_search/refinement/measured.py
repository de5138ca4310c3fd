"""The points of a grid that were measured, for refinement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from ajuste.analysis.pairs import Trials, clean_trials, pairs
from ajuste.model.metric import Metric
from ajuste_search.refinement.grid import Grid, SampledPoint
from ajuste_stats.pairs import Pairs

# A point without a clean pair in that many blocks is not tried again.
_HOPELESS: Final = 2


def sampled(grid: Grid, trials: Trials, metrics: Sequence[Metric], smallest_effect: float) -> tuple[SampledPoint, ...]:
    """Return the points of ``grid`` for refinement, one for each of ``metrics``, which are compared by their means.

    Differences from the baseline of the same block; logarithms of ratios where the metric is compared by ratios and all
    its values are positive.
    """
    clean = clean_trials(trials)
    others = [name for name in grid.names if name != grid.baseline]
    points = []
    for metric in metrics:
        by_name = {name: pairs(clean, grid.baseline, name, metric.column, order_matters=False) for name in others}
        by_name = {name: both for name, both in by_name.items() if len(both)}
        points.append(_sampled_point(by_name, metric, smallest_effect))
    return tuple(points)


def given_up(grid: Grid, trials: Trials) -> frozenset[str]:
    """Return the configurations that proved impossible to measure cleanly."""
    clean = clean_trials(trials)
    measured = clean.measured
    tried: dict[str, set[int]] = {}
    for code, number in zip(measured.configuration.codes, measured.block, strict=True):
        tried.setdefault(measured.configuration.values[code], set()).add(int(number))
    return frozenset(
        name
        for name, blocks in tried.items()
        if name != grid.baseline and len(blocks) >= _HOPELESS and not len(clean.of(name))
    )


def _sampled_point(by_name: dict[str, Pairs], metric: Metric, smallest_effect: float) -> SampledPoint:
    if metric.scale == "ratio" and all(
        np.all(both.baseline > 0) and np.all(both.other > 0) for both in by_name.values()
    ):
        logarithms = {name: (np.log(both.other) - np.log(both.baseline)).tolist() for name, both in by_name.items()}
        return SampledPoint(logarithms, math.log1p(smallest_effect))
    differences = {name: (both.other - both.baseline).tolist() for name, both in by_name.items()}
    level = float(np.mean([np.mean(both.baseline) for both in by_name.values()])) if by_name else 0.0
    return SampledPoint(differences, smallest_effect * abs(level) or metric.resolution or 1.0)

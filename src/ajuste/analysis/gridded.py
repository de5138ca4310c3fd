"""What trials say of every point of a grid, as refinement wants it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from ajuste.analysis.pairs import Pairs, Trials, clean_trials, pairs
from ajuste.design.refinement import Grid, Sampled
from ajuste.model.metric import Metric

_HOPELESS: Final = 2
"""A point that was tried in so many blocks without a clean pair is not tried again."""


def sampled(grid: Grid, trials: Trials, metrics: Sequence[Metric], smallest_effect: float) -> tuple[Sampled, ...]:
    """The differences from the baseline of the same block for each of ``metrics``, which are compared by their means.

    Logarithms of ratios where the metric is compared by ratios and all its values are positive.
    """
    clean = clean_trials(trials)
    others = [name for name in grid.names if name != grid.baseline]
    found = []
    for metric in metrics:
        of = {name: pairs(clean, grid.baseline, name, metric.column, order_matters=False) for name in others}
        of = {name: both for name, both in of.items() if len(both)}
        found.append(_one(of, metric, smallest_effect))
    return tuple(found)


def given_up(grid: Grid, trials: Trials) -> frozenset[str]:
    """The configurations that cannot be measured cleanly, as far as was seen."""
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


def _one(of: dict[str, Pairs], metric: Metric, smallest_effect: float) -> Sampled:
    if metric.scale == "ratio" and all(np.all(both.baseline > 0) and np.all(both.other > 0) for both in of.values()):
        logarithms = {name: (np.log(both.other) - np.log(both.baseline)).tolist() for name, both in of.items()}
        return Sampled(logarithms, math.log1p(smallest_effect))
    differences = {name: (both.other - both.baseline).tolist() for name, both in of.items()}
    level = float(np.mean([np.mean(both.baseline) for both in of.values()])) if of else 0.0
    return Sampled(differences, smallest_effect * abs(level) or metric.resolution or 1.0)

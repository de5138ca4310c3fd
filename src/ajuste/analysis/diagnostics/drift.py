"""Drift: whether the level moves in one direction over the run.

The Mann-Kendall test (Mann 1945, Econometrica 13; Kendall 1975) on the means of the blocks, and the Theil-Sen slope
(Sen 1968, JASA 63), which single disturbed blocks hardly move.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import ndtr

from ajuste.analysis.diagnostics.finding import Finding
from ajuste.analysis.diagnostics.naive import error_of_trend
from ajuste.analysis.diagnostics.residuals import Floats, Residuals

FEWEST_BLOCKS: Final = 10
_MOST: Final = 400
"""More blocks than this are averaged in groups: every pair of them is compared."""


def drift(residuals: Residuals) -> Finding | None:
    """The drift; ``None`` with too few blocks to tell."""
    if residuals.blocks < FEWEST_BLOCKS:
        return None
    means, places = _grouped(residuals.block_means)
    p_value, slope = trend_test(means, places)
    total = slope * (residuals.blocks - 1)
    left = residuals.values - slope * residuals.block
    by_trial = slope / float(np.mean(residuals.each_block))
    return Finding(
        kind="drift",
        measures="change from the first block to the last",
        value=float(np.expm1(total)) if residuals.scale == "ratio" else total,
        p_value=p_value,
        naive_error=error_of_trend(by_trial, float(np.std(left))),
        says=f"The level moved by {residuals.say(total)} from the first block to the last.",
        why="What is compared ran within the same block, where a drift has no time to act.",
    )


def trend_test(values: Floats, places: Floats) -> tuple[float, float]:
    """The two-sided p-value of the Mann-Kendall test (normal, with ties and continuity) and the slope."""
    one, other = np.triu_indices(len(values), 1)
    rises = values[other] - values[one]
    n = len(values)
    _, ties = np.unique(values, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float(np.sum(ties * (ties - 1) * (2 * ties + 5)))) / 18
    if variance <= 0:
        return 1.0, 0.0
    score = max(0.0, abs(float(np.sum(np.sign(rises)))) - 1) / math.sqrt(variance)
    return 2 * float(ndtr(-score)), float(np.median(rises / (places[other] - places[one])))


def _grouped(means: Floats) -> tuple[Floats, Floats]:
    size = math.ceil(len(means) / _MOST)
    whole = len(means) // size * size
    groups = means[:whole].reshape(-1, size).mean(axis=1)
    return groups, np.arange(len(groups), dtype=np.float64) * size

"""Order: whether a trial's place in its block matters.

The slope over the places within each block is one value a block; a t test on these (the blocks are independent of each
other, the trials of a block need not be).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import stdtr

from ajuste.analysis.diagnostics.finding import Finding
from ajuste.analysis.diagnostics.naive import error_of_bias
from ajuste.analysis.diagnostics.residuals import Floats, Residuals

FEWEST_BLOCKS: Final = 8


def order(residuals: Residuals) -> Finding | None:
    """The effect of the place; ``None`` with too few blocks that have several."""
    slopes = _slopes(residuals)
    if len(slopes) < FEWEST_BLOCKS:
        return None
    slope, spread = float(np.mean(slopes)), float(np.std(slopes, ddof=1))
    if spread == 0:
        return None
    p_value = 2 * float(stdtr(len(slopes) - 1, -abs(slope) / spread * math.sqrt(len(slopes))))
    last = slope * (float(np.max(residuals.position)) - float(np.min(residuals.position)))
    return Finding(
        kind="order",
        measures="change from the first place of a block to the last",
        value=float(np.expm1(last)) if residuals.scale == "ratio" else last,
        p_value=p_value,
        naive_error=error_of_bias(last, residuals.sd),
        says=f"From the first place in a block to the last the level moves by {residuals.say(last)}.",
        why="The order is drawn anew for every block, so that no configuration is favoured.",
    )


def _slopes(residuals: Residuals) -> Floats:
    """The least-squares slope over the places of each block that has at least two trials."""
    count = residuals.each_block
    centre = np.bincount(residuals.block, residuals.position, minlength=residuals.blocks) / count
    away = residuals.position - centre[residuals.block]
    squares = np.bincount(residuals.block, away**2, minlength=residuals.blocks)
    products = np.bincount(residuals.block, away * residuals.values, minlength=residuals.blocks)
    return np.asarray(products[squares > 0] / squares[squares > 0])

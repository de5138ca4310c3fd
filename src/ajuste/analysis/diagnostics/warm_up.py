"""A warm-up phase that was too short: whether the first blocks are off from what the later ones predict.

For the first 1, 2, 4 and 8 blocks: their mean against the straight line through all later block means, with the t test
of a prediction from a regression (Draper and Smith 1998, Applied Regression Analysis, 3.1); Bonferroni over lengths.
A drift that goes on for the whole run is part of the line; and where later blocks are as far from it, it is the line
that does not fit, and not the start.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import stdtr

from ajuste.analysis.diagnostics.finding import Finding
from ajuste.analysis.diagnostics.naive import BATCH, error_of_bias
from ajuste.analysis.diagnostics.residuals import Floats, Residuals

LENGTHS: Final = (1, 2, 4, 8)
FEWEST_BLOCKS: Final = 12


def warm_up(residuals: Residuals) -> Finding | None:
    """The warm-up that shows most; ``None`` with too few blocks to tell."""
    if residuals.blocks < FEWEST_BLOCKS:
        return None
    means = residuals.block_means
    lengths = [length for length in LENGTHS if length <= residuals.blocks // 4]
    tested = [(*_first_against_rest(means, length), length) for length in lengths]
    p_value, off, length = min(tested)
    trials = length * float(np.mean(residuals.each_block))
    blocks = "The first block is" if length == 1 else f"The first {length} blocks are"
    return Finding(
        kind="warm-up",
        measures="how far the first blocks are off",
        value=float(np.expm1(off)) if residuals.scale == "ratio" else off,
        p_value=min(1.0, p_value * len(lengths)),
        naive_error=error_of_bias(off * min(1.0, trials / BATCH), residuals.sd),
        says=f"{blocks} off by {residuals.say(off)} from what the later ones predict: the warm-up was too short.",
        why=f"All configurations of a block are equally warm; `warm_up = {length}` in [design] would leave these out.",
    )


def _first_against_rest(means: Floats, length: int) -> tuple[float, float]:
    """The p-value, and how far the mean of the first blocks is from its prediction."""
    places = np.arange(len(means), dtype=np.float64)
    x, y = places[length:], means[length:]
    spread = float(np.sum((x - x.mean()) ** 2))
    slope = float(np.sum((x - x.mean()) * y)) / spread
    residual = y - y.mean() - slope * (x - x.mean())
    variance = float(np.sum(residual**2)) / (len(y) - 2)
    away = float(places[:length].mean()) - float(x.mean())
    off = float(means[:length].mean()) - float(y.mean()) - slope * away
    later = np.convolve(residual, np.ones(length) / length, "valid")
    if float(np.max(np.abs(later))) >= abs(off):
        return 1.0, off
    error = math.sqrt(variance * (1 / length + 1 / len(y) + away**2 / spread))
    if error == 0:
        return (0.0 if off else 1.0), off
    return 2 * float(stdtr(len(y) - 2, -abs(off) / error)), off

"""The set of configurations that cannot be told from the best.

Multiple comparisons with the best (Hsu 1984, "Constrained simultaneous confidence intervals for multiple comparisons
with the best", Annals of Statistics 12), with the paired anytime-valid intervals of the verdicts in the place of
Dunnett's: a configuration is left out once another one is better beyond doubt. The truly best one is left out only if
one of its k − 1 intervals against the others is wrong, so each of these has the k-1st part of the error rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.sequence import half_width
from ajuste.analysis.surface.blocks import Array, Blocks
from ajuste.model.metric import Direction

MOST_RIVALS: Final = 64
"""So many of the best are compared with all others: what beats a configuration is among them, or it stays."""


@dataclass(frozen=True)
class BestSet:
    """``best`` is the place of the row with the best level, ``members`` those of all that may be the best."""

    best: int
    members: tuple[int, ...]


def best_set(blocks: Blocks, direction: Direction, alpha: float) -> BestSet:
    """Which rows of ``blocks`` may be the best; ``alpha`` is the error rate of the whole set."""
    toward = -1.0 if direction == "higher" else 1.0
    ranked = np.argsort(toward * blocks.levels, kind="stable")
    rivals = ranked[:MOST_RIVALS]
    apart, variances, n = _compared(blocks, rivals)
    each = alpha / max(1, len(ranked) - 1)
    widths = np.array([_width(count, each) for count in range(int(np.max(n)) + 1)])
    with np.errstate(invalid="ignore"):
        beaten = toward * apart - widths[n] * np.sqrt(variances) > 0
    if blocks.order is not None:
        beaten &= ~_one_order(blocks, blocks.order, rivals)
    out = np.any(beaten, axis=1)
    out[ranked[0]] = False
    return BestSet(int(ranked[0]), tuple(int(place) for place in ranked if not out[place]))


def _width(n: int, alpha: float) -> float:
    return half_width(n, 1.0, alpha) if n else np.inf


def _compared(blocks: Blocks, rivals: NDArray[np.intp]) -> tuple[Array, Array, NDArray[np.int64]]:
    """Of each row (down) against each of ``rivals`` (across), over the blocks that have both: the mean difference, the
    biased variance of the differences, at least that of rounding, and the number of blocks.
    """
    have = np.isfinite(blocks.values).astype(np.float64)
    left = np.where(have > 0, blocks.deviations, 0.0)
    rival_have, rival_left = have[rivals].T, left[rivals].T
    n = have @ rival_have
    some = np.maximum(n, 1)
    means = (left @ rival_have - have @ rival_left) / some
    squares = (left**2 @ rival_have + have @ rival_left**2 - 2 * left @ rival_left) / some
    rounding = blocks.rounding[:, None] + blocks.rounding[rivals][None, :]
    apart = blocks.levels[:, None] - blocks.levels[rivals][None, :] + means
    return apart, np.maximum(squares - means**2, rounding), np.rint(n).astype(np.int64)


def _one_order(blocks: Blocks, order: Array, rivals: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Where the same of the two ran first in every block, so that a drift would look like an effect."""
    have = np.isfinite(blocks.values)
    found = np.zeros((len(have), len(rivals)), dtype=np.bool_)
    for column, rival in enumerate(rivals):
        missing = ~(have & have[rival])
        first = order < order[rival]
        found[:, column] = np.all(first | missing, axis=1) | np.all(~first | missing, axis=1)
    return found

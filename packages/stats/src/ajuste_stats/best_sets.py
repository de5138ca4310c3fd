"""Best sets: which of many treatments may be the best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste_stats.block_tables import FEWEST_BLOCKS, Array, Blocks, believed
from ajuste_stats.confidence_sequences import mixture_half_width
from ajuste_stats.terms import Direction

_TINY: Final = 1e-300
MOST_RIVALS: Final = 64
"""The best ones that are compared with all others: what beats a treatment is among them, or it stays."""


@dataclass(frozen=True)
class BestSet:
    """``best`` is the place of the row with the best level, ``members`` those of all that may be the best."""

    best: int
    members: tuple[int, ...]


def best_set(blocks: Blocks, direction: Direction, alpha: float) -> BestSet:
    """Return the rows of ``blocks`` that may be the best; ``alpha`` is the error rate of the whole set.

    Multiple comparisons with the best (Hsu 1984, "Constrained simultaneous confidence intervals for multiple
    comparisons with the best", Annals of Statistics 12), with anytime-valid intervals of differences within blocks in
    place of Dunnett's: a treatment is left out once another one is better beyond doubt. The truly best one is left
    out only if one of its k − 1 intervals against the others is wrong, so each of these has the k-1st part of the error
    rate.
    """
    toward = -1.0 if direction == "higher" else 1.0
    ranked = np.argsort(toward * blocks.levels, kind="stable")
    rivals = ranked[:MOST_RIVALS]
    apart, n = _apart(blocks, rivals)
    half = _half_widths_apart(blocks, rivals, n, alpha / max(1, len(ranked) - 1))
    beaten = toward * apart > half
    if blocks.order is not None:
        beaten &= ~_same_order(blocks, blocks.order, rivals)
    out = np.any(beaten, axis=1)
    out[ranked[0]] = False
    return BestSet(int(ranked[0]), tuple(int(place) for place in ranked if not out[place]))


def _apart(blocks: Blocks, rivals: NDArray[np.intp]) -> tuple[Array, Array]:
    # Return the mean difference of each row (down) from each of `rivals` (across), and its number of blocks.
    have = np.isfinite(blocks.values).astype(np.float64)
    deviations = np.where(have > 0, blocks.deviations, 0.0)
    n = have @ have[rivals].T
    differences = (deviations @ have[rivals].T - have @ deviations[rivals].T) / np.maximum(n, 1)
    return blocks.levels[:, None] - blocks.levels[rivals][None, :] + differences, n


def _half_widths_apart(blocks: Blocks, rivals: NDArray[np.intp], n: Array, alpha: float) -> Array:
    row_variances, freedom = believed(blocks)
    variances = row_variances[:, None] + row_variances[rivals][None, :]
    parts = row_variances**2 / freedom
    degrees = variances**2 / np.maximum(parts[:, None] + parts[rivals][None, :], _TINY)
    half = mixture_half_width(n, variances, np.maximum(degrees, _TINY), alpha)
    if blocks.errors is not None:
        half = half + blocks.errors[:, None] + blocks.errors[rivals][None, :]
    return np.where(n >= FEWEST_BLOCKS, half, np.inf)


def _same_order(blocks: Blocks, order: Array, rivals: NDArray[np.intp]) -> NDArray[np.bool_]:
    # Return where the same of the two ran first in every block, so that a drift would look like an effect.
    have = np.isfinite(blocks.values)
    same = np.zeros((len(have), len(rivals)), dtype=np.bool_)
    for column, rival in enumerate(rivals):
        missing = ~(have & have[rival])
        first = order < order[rival]
        same[:, column] = np.all(first | missing, axis=1) | np.all(~first | missing, axis=1)
    return same

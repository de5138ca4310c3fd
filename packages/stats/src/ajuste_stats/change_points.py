"""Change points: where the level of a sequence changes, such as that of versions, which are no numbers.

Optimal partitioning as in ``regions``, into stretches of one level. A further stretch costs as much as noise alone
would gain by one with the error rate asked for.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
import scipy

from ajuste_stats.block_tables import Array, Blocks, at_least_pooled, believed
from ajuste_stats.regions import partition

_SMALLEST_ERROR: Final = 1e-9


def stretches(blocks: Blocks, alpha: float, margin: float) -> list[int] | None:
    """Return the start of each stretch of rows of one level; ``None`` while no noise is known.

    Noise alone makes several with probability ``alpha`` at most; levels within ``margin`` of each other are one.
    """
    variances, freedoms = believed(blocks)
    freedom = float(np.sum(np.maximum(0, blocks.counts - 1)))
    if freedom < 1 or not np.all(np.isfinite(variances)) or not np.all(freedoms > 0):
        return None
    errors = np.sqrt(at_least_pooled(variances, blocks) / np.maximum(1, blocks.counts))
    weights = 1 / np.maximum(errors, _SMALLEST_ERROR * max(float(np.ptp(blocks.levels)), _SMALLEST_ERROR)) ** 2
    return _joined(blocks.levels, change_points(blocks.levels, weights, freedom, alpha), margin)


def change_points(levels: Array, weights: Array, freedom: float, alpha: float) -> list[int]:
    """Return the start of each stretch of ``levels``, whose variances are the inverse ``weights``.

    These have ``freedom`` degrees of freedom. Noise alone makes several stretches with probability ``alpha`` at most.
    """
    # Two stretches can be parted at each place: the best gains as much as the largest of so many F(1, freedom).
    penalty = scipy.special.fdtri(1, freedom, 1 - alpha / max(1, len(levels) - 1))

    def cost(start: int, end: int) -> float:
        # χ² about the mean.
        stretch, known = levels[start:end], weights[start:end]
        return float(np.sum(known * (stretch - np.average(stretch, weights=known)) ** 2))

    return [0, *partition(len(levels), cost, penalty)[:-1]]


def _joined(levels: Array, starts: list[int], margin: float) -> list[int]:
    # Join neighbouring stretches, the most alike first, until all differ by more than `margin`.
    while len(starts) > 1:
        averages = [float(np.mean(stretch)) for stretch in np.split(levels, starts[1:])]
        apart = [abs(after - before) for before, after in pairwise(averages)]
        least = int(np.argmin(apart))
        if apart[least] > margin:
            break
        starts = [*starts[: least + 1], *starts[least + 2 :]]
    return starts

"""Permutation tests: which division of units makes the greatest difference, and whether chance makes as great a one.

Values change places among units, and the largest difference that any division makes is the measure (Westfall and Young
1993, "Resampling-Based Multiple Testing"), so that one error rate holds for all divisions.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PERMUTATIONS: Final = 1999
# Values that change places at once, in all permutations together.
_AT_ONCE: Final = 1 << 22


def greatest_difference(values: Floats, members: Floats, random: np.random.Generator) -> tuple[int, float]:
    """Return the place of the division that makes the greatest difference of ``values``, and its p-value.

    ``members`` has a row for each value and a column for each division: 1 for its members, 0 for the others; both parts
    of each have members. The p-value is that of all divisions together.
    """
    observed = _differences(values[None, :], members)[0]
    best = int(np.argmax(observed))
    reached, left = 0, PERMUTATIONS
    while left:
        count = min(left, max(1, _AT_ONCE // len(values)))
        shuffled = random.permuted(np.tile(values, (count, 1)), axis=1)
        reached += int(np.count_nonzero(_differences(shuffled, members).max(axis=1) >= observed[best] * (1 - 1e-9)))
        left -= count
    return best, (1 + reached) / (1 + PERMUTATIONS)


def _differences(effects: Floats, members: Floats) -> Floats:
    # Return |t| of members against others, for each row of `effects` and each column of `members`.
    count, inside = effects.shape[1], members.sum(axis=0)
    centred = effects - effects.mean(axis=1, keepdims=True)
    sums = centred @ members
    between = sums**2 * (1 / inside + 1 / (count - inside))
    total = np.sum(centred**2, axis=1, keepdims=True)
    statistics: Floats = np.sqrt(between / np.maximum(total - between, 1e-300))
    return statistics

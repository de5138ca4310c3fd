"""Pairs: the same block under the baseline and under another treatment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pairs:
    """Values of one quantity in the blocks where both are known, in block order; arrays of equal length, without NaN.

    ``baseline_first`` says for each block which of the two ran first; ``None`` where that cannot matter, as where every
    trial starts from the same snapshot and blocks differ by seed only. A value is the mean of ``each`` trials.
    """

    baseline: NDArray[np.float64]
    other: NDArray[np.float64]
    baseline_first: NDArray[np.bool_] | None = None
    each: int = 1

    def __len__(self) -> int:
        return len(self.baseline)

    @property
    def same_order(self) -> bool:
        """Return whether the same of the two ran first in every block, so that a drift would look like an effect."""
        return self.baseline_first is not None and bool(np.all(self.baseline_first == self.baseline_first[:1]))

"""Outliers: values far from the median of all, by the median absolute deviation."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

MAD_SCALE: Final = 1.4826
"""1/Φ⁻¹(3/4): for normal values the standard deviation is that many median absolute deviations."""

FAR: Final = 10.0
"""The modified z-score of an outlier (Iglewicz and Hoaglin 1993, "How to Detect and Handle Outliers"), as in hyperfine.

The book's 3.5 would flag one run in a hundred of every skewed, undisturbed benchmark.
"""


def distances_from_median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far each is from the median of all."""
    return np.abs(values - median(values))


def far_places(distances: NDArray[np.float64]) -> list[int]:
    """Return the places of the outliers, by the distances from the median in units of their own median."""
    unit = MAD_SCALE * median(distances)
    if unit == 0:
        return []
    return [int(place) for place in np.flatnonzero(distances > FAR * unit)]


def median(values: NDArray[np.float64]) -> float:
    """Return the median faster than ``numpy.median``, of one or more values, none of them NaN."""
    upper = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, upper)[upper])
    parted = np.partition(values, (upper - 1, upper))
    return float((parted[upper - 1] + parted[upper]) / 2)

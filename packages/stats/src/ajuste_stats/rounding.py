"""Rounding: what figures that are printed in steps leave unknown of their mean.

A figure that is printed to the nearest step s is off by up to s/2. Where it hardly varies, all trials are off by the
same, so more of them do not help: 0.096 and 0.104 are both 0.10 every time. Where it varies over many steps the errors
cancel (Sheppard 1898, "On the calculation of the most probable values of frequency-constants", Proceedings of the
London Mathematical Society 29). What tells these apart is how many pairs of trials print the same: of a share c of a
quarter or more the error of a mean is taken for s/2, of a twentieth or less for 0, and between them in proportion. For
one mode of density f it is at most f s²/6 (the characteristic function of such a density is at most 2f/|t|), which is
0.2 c s for normal noise: 1 % of a step at a twentieth. Four modes narrower than a step still have c of a quarter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste_stats.terms import Quantity

Array = NDArray[np.float64]

SMALLEST_RELATIVE_STEP: Final = 1e-9
"""The resolution, relative to the value, of figures with more decimals than any step: a nanosecond in a second."""
MOST_DECIMALS: Final = 12
UNLIKE: Final = 0.05
ALIKE: Final = 0.25
"""Shares of pairs that print the same up to which rounding errors cancel, and from which on they are equal."""
_WHOLE: Final = 1e-6


def printed_step(values: Array) -> float:
    """Return the last decimal place that any of ``values`` has: 0.01 for 0.1 and 0.25, and 1 for whole numbers.

    Zeros at the end are not seen, so 0.10 alone is known to 0.1 only: the step is never taken for too small.
    """
    values = np.abs(values[np.isfinite(values)])
    largest = float(np.max(values, initial=0.0))
    for decimals in range(MOST_DECIMALS + 1):
        places = values * 10.0**decimals
        off = np.abs(places - np.round(places))
        if np.all(off <= np.minimum(_WHOLE, 8 * np.finfo(np.float64).eps * np.maximum(places, 1))):
            return max(10.0**-decimals, SMALLEST_RELATIVE_STEP * largest)
    return SMALLEST_RELATIVE_STEP * largest


def figure_step(quantity: Quantity, values: Array) -> float:
    """Return the step of the figures: that of ``quantity`` if stated, or the last decimal place of ``values``."""
    return quantity.resolution or printed_step(values)


def figure_steps(quantity: Quantity, baseline: Array, other: Array) -> tuple[float, float]:
    """Return the step of the figures of each: two programs may print different digits. Zeros alone show none."""
    common = figure_step(quantity, np.concatenate([baseline, other]))
    first, second = (figure_step(quantity, side) if np.any(side) else common for side in (baseline, other))
    return first, second


def is_count(quantity: Quantity, values: Array) -> bool:
    """Return whether the figures are whole numbers of something, which no rounding has made so."""
    if quantity.unit or quantity.resolution not in (0, 1):
        return False
    by_difference = quantity.scale == "difference" or bool(np.any(values <= 0))
    return quantity.resolution == 1 or (by_difference and bool(np.all(values == np.round(values))))


def rounding_error(values: Array, step: float) -> float:
    """Return how far rounding to ``step`` may have moved the mean of ``values``, in their unit."""
    if step <= 0 or not len(values):
        return 0.0
    n = len(values)
    _, counts = np.unique(np.round(values / step), return_counts=True)
    alike = float(np.sum(counts * (counts - 1))) / (n * (n - 1)) if n > 1 else 1.0
    return step / 2 * float(np.clip((alike - UNLIKE) / (ALIKE - UNLIKE), 0, 1))


def row_errors(quantity: Quantity, rows: Sequence[Array] | Array, *, as_ratio: bool) -> Array:
    """Return how far rounding may have moved the mean of each of ``rows``, or of its logarithms; NaN are left out."""
    known = [row[np.isfinite(row)] for row in rows]
    every = np.concatenate(known)
    if is_count(quantity, every):
        return np.zeros(len(rows))
    step = figure_step(quantity, every)

    def error(row: Array) -> float:
        if not len(row):
            return 0.0
        return max(log_rounding_error(row, step)) if as_ratio else rounding_error(row, step)

    return np.array([error(row) for row in known])


def log_rounding_error(values: Array, step: float) -> tuple[float, float]:
    """Return how far below and above the mean logarithm of positive ``values`` that of the true ones may lie.

    Below there is no bound where a value is within its rounding error of 0.
    """
    error = rounding_error(values, step)
    below = -float(np.mean(np.log1p(-error / values))) if error < float(np.min(values)) else math.inf
    return below, float(np.mean(np.log1p(error / values)))

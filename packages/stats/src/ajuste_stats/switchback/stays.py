"""Stays: whether a treatment still gains when it remains in force for several slices.

Each block of stays has every treatment for ``STAY`` slices in a row. What is compared are the ends of the stays:
a system that remembers fewer than ``STAY`` slices shows there what it does under one treatment for good (the total
effect of m-carryover: Bojinov, Simchi-Levi and Zhao 2023, "Design and analysis of switchback experiments", Management
Science 69). Which treatment came first is a fair coin, so the signs of the differences decide, as in
``sign_intervals``: whatever drift and bursts do, a gain that is none is found at any look with probability at
most α.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ajuste_stats.sign_intervals import Floats
from ajuste_stats.switchback.design import STAY

TAIL: Final = 2
"""Slices at the end of a stay that count, and at its beginning, since which it has grown."""
REACH: Final = STAY - 1
"""A cost that comes up to so many slices later is in the end of a stay."""
HORIZON: Final = 2 * STAY - TAIL
"""Length of a stay in slices at whose end growth has gone on for as long again as the stay shows it."""
_MOST_RATE: Final = 0.9


@dataclass(frozen=True)
class StayDifferences:
    """Differences between a treatment and the baseline, one per block of stays.

    ``settled`` are those of the ends of the stays, ``projected`` the same with the growth since their beginnings once
    more: at the end of a stay of ``HORIZON`` slices. Of logarithms if the values are.
    """

    settled: Floats
    projected: Floats


SETTLED: Final = np.r_[np.zeros(STAY - TAIL), np.full(TAIL, 1 / TAIL)]
"""The weights of a stay's slices in its end."""
PROJECTED: Final = 2 * SETTLED - SETTLED[::-1]
"""The same at ``HORIZON``."""


def stay_differences(baseline: Floats, other: Floats) -> StayDifferences:
    """Return the differences of values of shape (blocks, ``STAY``)."""
    away = other - baseline
    return StayDifferences(away @ SETTLED, away @ PROJECTED)


def both_sides(alpha: float) -> float:
    """Return the error rate of an interval, each of whose sides is wrong with at most ``alpha``."""
    return min(2 * alpha, _MOST_RATE)


def stay_noise(noise: float, weights: Floats) -> float:
    """Return the standard deviation of such a difference, from the ``noise`` of that of two independent slices."""
    return noise * float(np.sqrt(np.sum(weights**2)))

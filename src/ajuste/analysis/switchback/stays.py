"""Stays: whether a configuration still gains when it remains in force for several slices.

Each block of stays has every configuration for ``STAY`` slices in a row. What is compared are the ends of the stays:
a system that remembers fewer than ``STAY`` slices shows there what it does under one configuration for good (the total
effect of m-carryover: Bojinov, Simchi-Levi and Zhao 2023, "Design and analysis of switchback experiments", Management
Science 69). Which configuration came first is a fair coin, so the signs of the differences decide, as in
``analysis.sign_intervals``: whatever drift and bursts do, a gain that is none is found at any look with probability at
most α.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from ajuste.design.switchback import STAY
from ajuste.model.live import Slice
from ajuste_stats.sign_intervals import Floats

TAIL: Final = 2
"""Slices at the end of a stay that count, and at its beginning, since which it has grown."""
REACH: Final = STAY - 1
"""A cost that comes up to so many slices later is in the end of a stay."""
HORIZON: Final = 2 * STAY - TAIL
"""Length of a stay in slices at whose end growth has gone on for as long again as the stay shows it."""
_MOST_RATE: Final = 0.9
_APART: Final = 1.5
"""Slices further apart than this many lengths of what counts of them are no longer one stay."""


@dataclass(frozen=True)
class StayDifferences:
    """Differences between a configuration and the baseline, one per block of stays.

    ``settled`` are those of the ends of the stays, ``projected`` the same with the growth since their beginnings once
    more: at the end of a stay of ``HORIZON`` slices. Of logarithms if the values are.
    """

    settled: Floats
    projected: Floats


SETTLED: Final = np.r_[np.zeros(STAY - TAIL), np.full(TAIL, 1 / TAIL)]
"""The weights of a stay's slices in its end."""
PROJECTED: Final = 2 * SETTLED - SETTLED[::-1]
"""The same at ``HORIZON``."""


def stays_of(slices: Sequence[Slice], configurations: tuple[str, str]) -> list[tuple[list[Slice], list[Slice]]]:
    """Return the stays of both ``configurations`` of each block that has them whole, in the order of time."""
    by_block: dict[int, dict[str, list[Slice]]] = {}
    for time_slice in sorted(slices, key=lambda s: s.number):
        if time_slice.stay:
            by_block.setdefault(time_slice.block, {}).setdefault(time_slice.configuration, []).append(time_slice)
    first, second = configurations
    pairs = [(stays.get(first, []), stays.get(second, [])) for _, stays in sorted(by_block.items())]
    return [pair for pair in pairs if all(map(_is_whole, pair))]


def _is_whole(stay: Sequence[Slice]) -> bool:
    # Only an uninterrupted stay shows what staying does: no other configuration, pause or crash in between.
    if [time_slice.stay for time_slice in stay] != list(range(1, STAY + 1)):
        return False
    return all(time_slice.counts for time_slice in stay) and all(
        after.number == before.number + 1 and after.begin_s - before.end_s <= _APART * (before.end_s - before.begin_s)
        for before, after in pairwise(stay)
    )


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

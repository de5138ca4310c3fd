"""Regions along a curve: stretches of one character, found where a single line no longer fits within the noise.

Optimal partitioning: samples are the steps between neighbouring levels, so that regions share the level at which one
turns into the next; the cost of a region is the χ² of the best line through its points. A further region costs as much
as noise alone would gain by one with the error rate asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

from ajuste_stats.terms import Shape

Array = NDArray[np.float64]

FEWEST_POINTS: Final = 4
"""Minimum number of points of a curve that can be divided."""
# Times the curve's mean steepness: from there on a fall is fast, and below its inverse slow.
_FAST: Final = 1.5
# That many alternating short falls and rises are an oscillation.
_TURNS: Final = 3
# Standard errors between the ends of two flat regions that count as different.
_APART: Final = 3.0
# Steps of a fall or rise that can be part of one.
_SHORT: Final = 2


@dataclass(frozen=True)
class GridLine:
    """A curve of ``y`` at ascending ``x``; each point has a standard ``error`` of ``freedom`` degrees of freedom."""

    x: Array
    y: Array
    error: Array
    freedom: float


@dataclass(frozen=True)
class Stretch:
    """The points of a curve from place ``start`` to ``end``, both included."""

    start: int
    end: int
    shape: Shape


@dataclass(frozen=True)
class _Part:
    # `sign` is that of its slope, 0 where it is flat; `waves` where alternating parts were joined.
    start: int
    end: int
    sign: int
    waves: bool = False


def regions(line: GridLine, *, alpha: float, margin: float) -> tuple[Stretch, ...]:
    """Return the regions of ``line``.

    A flat line has more than one region, or one that is not flat, with probability ``alpha`` at most. Changes up to
    ``margin``, in units of y, do not matter: they are flat, however certain.
    """
    if len(line.x) < FEWEST_POINTS or line.freedom < 1:
        return ()
    ends = [0, *_change_points(line, alpha / 2)]
    parts = [_part(line, start, end, alpha / 2 / (len(ends) - 1), margin) for start, end in pairwise(ends)]
    parts = _joined_waves(parts)
    return _named(line, _joined_flat(line, parts, margin))


def _change_points(line: GridLine, alpha: float) -> list[int]:
    steps = len(line.x) - 1
    penalty = 2 * scipy.special.fdtri(2, line.freedom, 1 - alpha / max(1, steps - 1))
    weights, x, y = 1 / line.error**2, line.x - line.x.mean(), line.y - line.y.mean()
    terms = np.stack([weights, weights * x, weights * y, weights * x * x, weights * x * y, weights * y * y])
    sums = np.concatenate([np.zeros((6, 1)), np.cumsum(terms, axis=1)], axis=1)
    return partition(steps, lambda start, end: _chi_squared(sums[:, end + 1] - sums[:, start]), penalty)


def _chi_squared(sums: Array) -> float:
    w, x, y, xx, xy, yy = map(float, sums)
    across = xx - x * x / w
    along = xy - x * y / w
    return max(0.0, yy - y * y / w - (along * along / across if across > 0 else 0.0))


def _part(line: GridLine, start: int, end: int, alpha: float, margin: float) -> _Part:
    places = slice(start, end + 1)
    x, y, weights = line.x[places], line.y[places], 1 / line.error[places] ** 2
    middle = np.average(x, weights=weights)
    across = float(np.sum(weights * (x - middle) ** 2))
    slope = float(np.sum(weights * (x - middle) * y)) / across
    width = float(x[-1] - x[0])
    doubt = scipy.special.stdtrit(line.freedom, 1 - alpha / 2) * width / np.sqrt(across)
    change = slope * width
    return _Part(start, end, 0 if abs(change) <= max(doubt, margin) else int(np.sign(change)))


def _joined_waves(parts: Sequence[_Part]) -> list[_Part]:
    # Join short falls and rises that alternate.
    joined: list[_Part] = []
    run: list[_Part] = []

    def close() -> None:
        joined.extend([_Part(run[0].start, run[-1].end, 0, waves=True)] if len(run) >= _TURNS else run)
        run.clear()

    for part in parts:
        short = part.sign != 0 and part.end - part.start <= _SHORT
        if run and not (short and part.sign == -run[-1].sign):
            close()
        if short:
            run.append(part)
        else:
            joined.append(part)
    close()
    return joined


def _joined_flat(line: GridLine, parts: Sequence[_Part], margin: float) -> list[_Part]:
    # Join flat neighbours if the difference between their ends does not matter or may be nothing.
    joined: list[_Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if last is not None and last.sign == part.sign == 0 and not last.waves and not part.waves:
            apart = abs(float(line.y[part.end] - line.y[last.start]))
            if apart <= max(margin, _APART * float(np.hypot(line.error[part.end], line.error[last.start]))):
                joined[-1] = replace(last, end=part.end)
                continue
        joined.append(part)
    return joined


def _named(line: GridLine, parts: Sequence[_Part]) -> tuple[Stretch, ...]:
    moving = [abs(float(line.y[p.end] - line.y[p.start])) for p in parts if p.sign]
    whole = float(line.x[-1] - line.x[0])

    def shape(part: _Part) -> Shape:
        if part.waves:
            return "oscillating"
        if part.sign == 0:
            return "flat"
        share = abs(float(line.y[part.end] - line.y[part.start])) / sum(moving)
        steepness = share / (float(line.x[part.end] - line.x[part.start]) / whole)
        if part.sign < 0:
            return "fast fall" if steepness >= _FAST else "slow fall" if steepness <= 1 / _FAST else "fall"
        return "fast rise" if steepness >= _FAST else "slow rise" if steepness <= 1 / _FAST else "rise"

    named = [(part, shape(part)) for part in parts]
    return tuple(
        Stretch(run[0][0].start, run[-1][0].end, word)
        for word, group in groupby(named, key=lambda pair: pair[1])
        if (run := list(group))
    )


Cost = Callable[[int, int], float]
"""The cost of the points from the first place to before the second one as one stretch."""


def partition(count: int, cost: Cost, penalty: float) -> list[int]:
    """Return where each stretch of ``count`` points ends, at the least costs plus a ``penalty`` a stretch.

    Dynamic programming (Jackson and others 2005, "An algorithm for optimal partitioning of data on an interval", IEEE
    Signal Processing Letters 12).
    """
    least = [0.0]
    begins = [0]
    for end in range(1, count + 1):
        all_costs = [least[start] + cost(start, end) + penalty for start in range(end)]
        least.append(min(all_costs))
        begins.append(all_costs.index(least[-1]))
    ends = [count]
    while begins[ends[0]] > 0:
        ends.insert(0, begins[ends[0]])
    return ends

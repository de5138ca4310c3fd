"""Samplers, and the space that they search: the lattice of the levels of all factors that vary."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ajuste.model.trial import Factor
from ajuste.model.tunable import same_value

Point: TypeAlias = tuple[int, ...]
"""A point of the lattice: the place of its level on every axis."""
Row: TypeAlias = tuple[float, ...]
"""Coordinates of a point for a model: every ordered axis from 0 to 1, every other one with a column for each level."""
Scale: TypeAlias = Literal["linear", "logarithmic", "ranks", "none"]

WIDE: Final = 10.0
"""Levels of which the largest is so many times the smallest are taken by their logarithm."""


@dataclass(frozen=True)
class SearchAxis:
    """A factor that varies. ``scale`` is ``none`` where its levels are in no order."""

    name: str
    levels: tuple[str, ...]
    scale: Scale

    @cached_property
    def _numbers(self) -> NDArray[np.float64]:
        return np.array([float(level) for level in self.levels])

    @property
    def columns(self) -> int:
        """Return the number of columns that the axis takes in a row."""
        return len(self.levels) if self.scale == "none" else 1

    def coordinates(self, level: str) -> tuple[float, ...]:
        """Return where ``level`` lies; a kernel may have made it of another, between two of ``levels`` or beyond."""
        if self.scale == "none":
            return tuple(float(level == choice) for choice in self.levels)
        number = _number(level)
        if number is None:
            return (0.0,)
        if self.scale == "ranks":
            ordered = np.sort(self._numbers)
            return (float(np.interp(number, ordered, np.linspace(0, 1, len(ordered)))),)
        low, high = float(self._numbers.min()), float(self._numbers.max())
        if self.scale == "linear":
            return ((number - low) / (high - low),)
        return (math.log(max(number, low / WIDE) / low) / math.log(high / low),)


@dataclass(frozen=True)
class Space:
    """The combinations of the levels of ``axes``; ``baseline`` is the point that others are compared with."""

    axes: tuple[SearchAxis, ...]
    baseline: Point

    @property
    def size(self) -> int:
        """Return the number of points."""
        return math.prod(len(axis.levels) for axis in self.axes)

    def point_levels(self, point: Point) -> dict[str, str]:
        """Return the level of each factor that varies."""
        return {axis.name: axis.levels[place] for axis, place in zip(self.axes, point, strict=True)}

    def find_point(self, levels: Mapping[str, str]) -> Point | None:
        """Return the point with these levels, however they are written; ``None`` where there is none."""
        places = []
        for axis in self.axes:
            alike = [place for place, level in enumerate(axis.levels) if same_value(level, levels[axis.name])]
            if not alike:
                return None
            places.append(alike[0])
        return tuple(places)

    def row(self, levels: dict[str, str]) -> Row:
        """Return the row of a configuration with these levels (as they were read back)."""
        return tuple(number for axis in self.axes for number in axis.coordinates(levels[axis.name]))

    def rows(self, points: Iterable[Point]) -> NDArray[np.float64]:
        """Return a line for each point."""
        tables = [np.array([axis.coordinates(level) for level in axis.levels]) for axis in self.axes]
        places = np.array(list(points), np.int64).reshape(-1, len(self.axes))
        return np.hstack([table[places[:, column]] for column, table in enumerate(tables)])

    def all_points(self) -> list[Point]:
        """Yield every point, the last axis changing fastest."""
        return [tuple(map(int, point)) for point in np.ndindex(*(len(axis.levels) for axis in self.axes))]

    def some_points(self, generator: np.random.Generator, most: int, near: Sequence[Point]) -> list[Point]:
        """Return all points if at most ``most``; otherwise so many at random, and all neighbours of ``near``."""
        if self.size <= most:
            return self.all_points()
        columns = [generator.integers(0, len(axis.levels), most) for axis in self.axes]
        drawn = {tuple(map(int, point)) for point in zip(*columns, strict=True)}
        return sorted(drawn | {neighbour for point in near for neighbour in self.neighbours(point)})

    def neighbours(self, point: Point) -> list[Point]:
        """Return the points one step away on one axis or on two; without order any other level is."""
        singles = [
            (place, level)
            for place, axis in enumerate(self.axes)
            for level in (range(len(axis.levels)) if axis.scale == "none" else (point[place] - 1, point[place] + 1))
            if 0 <= level < len(axis.levels) and level != point[place]
        ]
        points = set()
        for axis_place, others in singles:
            for two, other in singles:
                if axis_place <= two:
                    changed = list(point)
                    changed[axis_place] = others
                    if two != axis_place:
                        changed[two] = other
                    points.add(tuple(changed))
        return sorted(points)


def build_space(factors: Sequence[Factor]) -> Space:
    """Return the space of those of ``factors`` that have several levels."""
    varied = [factor for factor in factors if len(factor.levels) > 1]
    return Space(
        axes=tuple(SearchAxis(factor.name, factor.levels, _scale(factor)) for factor in varied),
        baseline=tuple(factor.levels.index(factor.baseline) for factor in varied),
    )


def _scale(factor: Factor) -> Scale:
    levels = factor.levels
    numbers = [_number(level) for level in levels]
    known = [number for number in numbers if number is not None]
    if len(known) < len(levels) or len(set(known)) < len(levels) or len(levels) < 3:
        return "none"
    ratios = factor.span is not None and factor.span.scale == "log"
    if min(known) > 0 and (ratios or max(known) >= WIDE * min(known)):
        return "logarithmic"
    if min(known) > 0:
        return "linear"
    positive = [number for number in known if number > 0]
    return "ranks" if positive and max(positive) >= WIDE * min(positive) else "linear"


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


@dataclass(frozen=True)
class SamplerTask:
    """The task of a sampler: everything random follows from ``seed``. ``allowed`` is how many points it will be
    asked for in all, ``objectives`` and ``constraints`` count them.
    """

    space: Space
    seed: int
    allowed: int
    objectives: int = 1
    constraints: int = 0


class SearchSampler(Protocol):
    """Suggests points. May remember what it suggested, and is asked in the order in which a run went, so that an
    interrupted run goes on as it would have.
    """

    def suggest(self, tried: Sequence[Tried], count: int, taken: Collection[Point] = ()) -> list[Point]:
        """Return the next points, up to ``count``; each is new.

        ``tried`` is everything so far, and ``taken`` are points that are known to become something that was tried.
        """
        ...


# Observations for a sampler: a point, its measured value, and how certain that is.


@dataclass(frozen=True)
class Tried:
    """``values`` has one figure for every objective, smaller is better; ``excess`` how far the point is beyond every
    constraint (0 or less: within it). ``runs`` says how many runs these are means of, ``variances`` how far a single
    run of each objective strays; 0 where unknown.
    """

    point: Point
    row: Row
    values: tuple[float, ...]
    variances: tuple[float, ...] = ()
    excess: tuple[float, ...] = ()
    runs: int = 1

    @property
    def allowed(self) -> bool:
        """Return whether all constraints seem to hold."""
        return all(excess <= 0 for excess in self.excess)

    @property
    def violation(self) -> float:
        """Return the sum of what exceeds the constraints."""
        return sum(max(0.0, excess) for excess in self.excess)


def front(tried: Sequence[Tried]) -> list[Tried]:
    """Return the Pareto front: trials that no other beats on every objective, the best on the first one first."""
    undominated = [trial for trial in tried if not any(_dominates(other, trial) for other in tried)]
    return sorted({trial.values: trial for trial in reversed(undominated)}.values(), key=lambda trial: trial.values)


def _dominates(trial: Tried, other: Tried) -> bool:
    pairs = list(zip(trial.values, other.values, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


# Points spread evenly over the space, for the beginning, when nothing is known.


def filling(space: Space, count: int, seed: int, taken: Collection[Point]) -> list[Point]:
    """Return ``count`` new points of a scrambled Sobol sequence, moved to the lattice; fewer if the space is full.

    Source: Owen (1998), "Scrambling Sobol' and Niederreiter-Xing points".
    """
    from scipy.stats import qmc  # slow to load, and few commands search

    sizes = np.array([len(axis.levels) for axis in space.axes])
    sobol = qmc.Sobol(len(sizes), rng=np.random.default_rng([seed, 1]))
    points: dict[Point, None] = {}
    left = space.size - len(set(taken))
    for _ in range(64):
        for line in np.minimum(sobol.random(16) * sizes, sizes - 1).astype(int):
            point = tuple(map(int, line))
            if point not in taken and len(points) < min(count, left):
                points.setdefault(point)
        if len(points) >= min(count, left):
            return list(points)
    return [*points, *unused(space, count - len(points), seed, {*taken, *points})]


def unused(space: Space, count: int, seed: int, taken: Collection[Point]) -> list[Point]:
    """Return ``count`` random points that are not among ``taken``; fewer only where the space has no more."""
    generator = np.random.default_rng([seed, 2, len(taken)])
    if space.size <= 4 * (len(taken) + count):
        free = [point for point in space.all_points() if point not in taken]
        generator.shuffle(free)
        return free[:count]
    points: dict[Point, None] = {}
    while len(points) < count:
        point = tuple(int(generator.integers(0, len(axis.levels))) for axis in space.axes)
        if point not in taken:
            points.setdefault(point)
    return list(points)

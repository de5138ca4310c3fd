"""What a sampler is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from ajuste.design.search.space import Point, Row, Space

SamplerName = Literal["gp", "tpe", "cmaes", "nsga2", "random", "grid"]


@dataclass(frozen=True)
class SamplerTask:
    """What a sampler is made for: everything random follows from ``seed``. ``allowed`` is how many points it will be
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
        """The next points, ``count`` or fewer where no more are left; each is new. ``tried`` is everything so far, and
        ``taken`` are points that are known to become something that was tried.
        """
        ...


# What a sampler is told: a point, what was measured there, and how surely that is known.


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
        """Whether all constraints seem to hold."""
        return all(excess <= 0 for excess in self.excess)

    @property
    def violation(self) -> float:
        """How far beyond the constraints in all."""
        return sum(max(0.0, excess) for excess in self.excess)


def front(tried: Sequence[Tried]) -> list[Tried]:
    """Those that no other one beats on every objective, the best on the first one first."""
    found = [one for one in tried if not any(_dominates(other, one) for other in tried)]
    return sorted({one.values: one for one in reversed(found)}.values(), key=lambda one: one.values)


def _dominates(one: Tried, other: Tried) -> bool:
    pairs = list(zip(one.values, other.values, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


# Points spread evenly over the space, for the beginning, when nothing is known.


def filling(space: Space, count: int, seed: int, taken: Collection[Point] = ()) -> list[Point]:
    """``count`` points of a scrambled Sobol sequence, moved to the lattice; each once and none of ``taken``.

    Fewer only where the space has no more. Source: Owen (1998), "Scrambling Sobol' and Niederreiter-Xing points".
    """
    from scipy.stats import qmc  # slow to load, and few commands search

    sizes = np.array([len(axis.levels) for axis in space.axes])
    sobol = qmc.Sobol(len(sizes), rng=np.random.default_rng([seed, 1]))
    found: dict[Point, None] = {}
    left = space.size - len(set(taken))
    for _ in range(64):
        for line in np.minimum(sobol.random(16) * sizes, sizes - 1).astype(int):
            point = tuple(map(int, line))
            if point not in taken and len(found) < min(count, left):
                found.setdefault(point)
        if len(found) >= min(count, left):
            return list(found)
    return [*found, *unused(space, count - len(found), seed, {*taken, *found})]


def unused(space: Space, count: int, seed: int, taken: Collection[Point]) -> list[Point]:
    """``count`` points at random that are not among ``taken``; fewer only where the space has no more."""
    generator = np.random.default_rng([seed, 2, len(taken)])
    if space.size <= 4 * (len(taken) + count):
        free = [point for point in space.all_points() if point not in taken]
        generator.shuffle(free)
        return free[:count]
    found: dict[Point, None] = {}
    while len(found) < count:
        point = tuple(int(generator.integers(0, len(axis.levels))) for axis in space.axes)
        if point not in taken:
            found.setdefault(point)
    return list(found)

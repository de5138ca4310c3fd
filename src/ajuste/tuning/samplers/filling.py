"""Points spread evenly over the space, for the beginning, when nothing is known."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from scipy.stats import qmc

from ajuste.tuning.space import Point, Space


def filling(space: Space, count: int, seed: int, taken: Collection[Point] = ()) -> list[Point]:
    """``count`` points of a scrambled Sobol sequence, moved to the lattice; each once and none of ``taken``.

    Fewer only where the space has no more. Source: Owen (1998), "Scrambling Sobol' and Niederreiter-Xing points".
    """
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

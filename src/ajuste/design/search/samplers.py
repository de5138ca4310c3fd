"""The samplers by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ajuste.design.search.gaussian import GaussianSampler
from ajuste.design.search.sampler import SamplerName, SamplerTask, SearchSampler, Tried, unused
from ajuste.design.search.space import Point

# Samplers that learn nothing, to compare others with: at random, and a grid.


@dataclass
class RandomSampler:
    """Points at random, each once."""

    task: SamplerTask

    def suggest(self, tried: Sequence[Tried], count: int, taken: Collection[Point] = ()) -> list[Point]:
        return unused(self.task.space, count, self.task.seed, {*taken, *(one.point for one in tried)})


@dataclass
class GridSampler:
    """The finest grid of evenly spaced levels that has no more points than are allowed, in random order; afterwards
    points at random.
    """

    task: SamplerTask
    _left: list[Point] | None = field(default=None, init=False)

    def suggest(self, tried: Sequence[Tried], count: int, taken: Collection[Point] = ()) -> list[Point]:
        if self._left is None:
            self._left = self._grid()
        known = {*taken, *(one.point for one in tried)}
        free = [point for point in self._left if point not in known][:count]
        return [*free, *unused(self.task.space, count - len(free), self.task.seed, known | set(free))]

    def _grid(self) -> list[Point]:
        sizes = [len(axis.levels) for axis in self.task.space.axes]
        kept = [1] * len(sizes)
        while True:
            finer = [place for place, size in enumerate(sizes) if kept[place] < size]
            fits = [place for place in finer if np.prod(kept) / kept[place] * (kept[place] + 1) <= self.task.allowed]
            if not fits:
                break
            kept[min(fits, key=lambda place: kept[place])] += 1
        lines = [_spread(size, count) for size, count in zip(sizes, kept, strict=True)]
        grid = [tuple(line[at] for line, at in zip(lines, place, strict=True)) for place in np.ndindex(*kept)]
        np.random.default_rng([self.task.seed, 3]).shuffle(grid)
        return [tuple(map(int, point)) for point in grid]


def _spread(size: int, count: int) -> list[int]:
    """The middles of ``count`` equal parts of ``size`` levels."""
    return [int((2 * place + 1) * size / (2 * count)) for place in range(count)]


TITLES: Final[dict[SamplerName, str]] = {
    "gp": "Gaussian process, expected improvement",
    "tpe": "tree-structured Parzen estimators (Optuna)",
    "cmaes": "CMA-ES (Optuna)",
    "nsga2": "NSGA-II (Optuna)",
    "random": "at random",
    "grid": "grid",
}


def make_sampler(name: SamplerName, task: SamplerTask) -> SearchSampler:
    """The sampler of that name. Optuna, which takes long to load, only where it is wanted."""
    if name == "gp":
        return GaussianSampler(task)
    if name == "random":
        return RandomSampler(task)
    if name == "grid":
        return GridSampler(task)
    from ajuste.design.search.replayed import ReplayedSampler

    return ReplayedSampler(name, task)

"""The samplers by name."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from ajuste.model.search import SamplerName
from ajuste_search.tuning.sampler import Point, SamplerTask, SearchSampler, Tried, unused
from ajuste_search.tuning.surrogate import GaussianSampler

# Optuna's samplers. Ask and tell in the order of the run, so that a resumed run gets the same suggestions.


MOST_ASKED: Final = 30
"""Maximum number of requests in a row for a point that was not tried yet."""

optuna.logging.set_verbosity(optuna.logging.ERROR)


def build_sampler(name: str, task: SamplerTask) -> optuna.samplers.BaseSampler:
    """Return Optuna's sampler of that name, for a few dozen trials."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Our documentation names what is experimental.
        if name == "tpe":
            return optuna.samplers.TPESampler(seed=task.seed)
        if name == "cmaes":
            return optuna.samplers.CmaEsSampler(seed=task.seed, with_margin=True, warn_independent_sampling=False)
        return optuna.samplers.NSGAIISampler(seed=task.seed, population_size=max(4, task.allowed // 5))


class ReplayedSampler:
    """A sampler of Optuna. A point that it repeats gets the known value at once and costs no trial. A point that breaks
    a constraint counts as worse than all that keep them.
    """

    def __init__(self, name: str, task: SamplerTask) -> None:
        self._task = task
        self._study = optuna.create_study(directions=["minimize"] * task.objectives, sampler=build_sampler(name, task))
        self._asked: list[tuple[optuna.trial.Trial, Point]] = []
        self._distributions: dict[str, BaseDistribution] = {
            axis.name: CategoricalDistribution(tuple(range(len(axis.levels))))
            if axis.scale == "none"
            else IntDistribution(0, len(axis.levels) - 1)
            for axis in task.space.axes
        }

    def suggest(self, tried: Sequence[Tried], count: int, taken: Collection[Point] = ()) -> list[Point]:
        losses = {trial.point: _penalised_values(trial, tried) for trial in tried}
        for trial, point in self._asked:
            if point in losses:
                self._study.tell(trial, losses[point])
        self._asked = [(trial, point) for trial, point in self._asked if point not in losses]
        suggested: list[Point] = []
        for _ in range(MOST_ASKED + count):
            if len(suggested) == count:
                return suggested
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trial = self._study.ask(self._distributions)
            point = tuple(int(trial.params[axis.name]) for axis in self._task.space.axes)
            if point in losses:
                self._study.tell(trial, losses[point])
            elif point in suggested or point in taken:
                self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                suggested.append(point)
                self._asked.append((trial, point))
        known = {*losses, *suggested, *taken}
        return [*suggested, *unused(self._task.space, count - len(suggested), self._task.seed, known)]


def _penalised_values(outcome: Tried, tried: Sequence[Tried]) -> list[float]:
    if outcome.allowed:
        return list(outcome.values)
    worst = [max(other.values[place] for other in tried) for place in range(len(outcome.values))]
    return [value + outcome.violation for value in worst]


# Samplers that learn nothing, to compare others with: at random, and a grid.


@dataclass
class RandomSampler:
    """Points at random, each once."""

    task: SamplerTask

    def suggest(self, tried: Sequence[Tried], count: int, taken: Collection[Point] = ()) -> list[Point]:
        return unused(self.task.space, count, self.task.seed, {*taken, *(trial.point for trial in tried)})


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
        known = {*taken, *(trial.point for trial in tried)}
        free = [point for point in self._left if point not in known][:count]
        return [*free, *unused(self.task.space, count - len(free), self.task.seed, known | set(free))]

    def _grid(self) -> list[Point]:
        sizes = [len(axis.levels) for axis in self.task.space.axes]
        counts = [1] * len(sizes)
        while True:
            finer = [place for place, size in enumerate(sizes) if counts[place] < size]
            fits = [
                place for place in finer if np.prod(counts) / counts[place] * (counts[place] + 1) <= self.task.allowed
            ]
            if not fits:
                break
            counts[min(fits, key=lambda place: counts[place])] += 1
        # The middles of `count` equal parts of `size` levels.
        lines = [
            [int((2 * place + 1) * size / (2 * count)) for place in range(count)]
            for size, count in zip(sizes, counts, strict=True)
        ]
        grid = [tuple(line[at] for line, at in zip(lines, place, strict=True)) for place in np.ndindex(*counts)]
        np.random.default_rng([self.task.seed, 3]).shuffle(grid)
        return [tuple(map(int, point)) for point in grid]


TITLES: Final[dict[SamplerName, str]] = {
    "gp": "Gaussian process, expected improvement",
    "tpe": "tree-structured Parzen estimators (Optuna)",
    "cmaes": "CMA-ES (Optuna)",
    "nsga2": "NSGA-II (Optuna)",
    "random": "at random",
    "grid": "grid",
}


def make_sampler(name: SamplerName, task: SamplerTask) -> SearchSampler:
    """Return the sampler of that name."""
    if name == "gp":
        return GaussianSampler(task)
    if name == "random":
        return RandomSampler(task)
    if name == "grid":
        return GridSampler(task)
    return ReplayedSampler(name, task)

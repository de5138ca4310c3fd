"""Ways of searching a surface: each gives the points that it tries."""

from __future__ import annotations

import importlib.util
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import optuna

from ajuste.model.search import SamplerName
from ajuste_search.tuning.sampler import Point, SamplerTask, Tried
from ajuste_search.tuning.samplers import make_sampler
from benchmarks.tuning.surfaces import Surface

Method: TypeAlias = Callable[[Surface, int, int], list[Point]]
"""Function from a surface, a seed and a number of trials to the points that are tried."""


def _ajuste(name: SamplerName) -> Method:
    def search(surface: Surface, seed: int, trials: int) -> list[Point]:
        sampler = make_sampler(name, SamplerTask(surface.space, seed, trials))
        tried: list[Tried] = []
        while len(tried) < trials:
            for point in sampler.suggest(tried, 1):
                row = surface.space.row(surface.space.point_levels(point))
                tried.append(Tried(point, row, (surface.values[point],)))
        return [trial.point for trial in tried]

    return search


def optuna_tpe(surface: Surface, seed: int, trials: int) -> list[Point]:
    """Optuna as it comes: TPE over whole numbers, with nothing said of a lattice or of points tried before."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    points: list[Point] = []

    def objective(trial: optuna.trial.Trial) -> float:
        point = tuple(trial.suggest_int(axis.name, 0, len(axis.levels) - 1) for axis in surface.space.axes)
        points.append(point)
        return surface.values[point]

    study.optimize(objective, n_trials=trials)
    return points


METHODS: Final[dict[str, Method]] = {
    "ajuste": _ajuste("gp"),
    "random": _ajuste("random"),
    "grid": _ajuste("grid"),
    "Optuna TPE": optuna_tpe,
}


def smac_method() -> Method | None:
    """SMAC3 with its facade for hyperparameters, as MLOS uses it; ``None`` where it is not installed."""
    if importlib.util.find_spec("smac") is None:
        return None
    return _smac


def _smac(surface: Surface, seed: int, trials: int) -> list[Point]:
    from ConfigSpace import ConfigurationSpace, Integer
    from smac import HyperparameterOptimizationFacade, Scenario

    logging.disable(logging.WARNING)
    space = ConfigurationSpace(seed=seed)
    space.add([Integer(axis.name, (0, len(axis.levels) - 1)) for axis in surface.space.axes])
    points: list[Point] = []

    def objective(configuration: Any, seed: int = 0) -> float:  # noqa: ARG001 - SMAC hands it over by name
        point = tuple(int(configuration[axis.name]) for axis in surface.space.axes)
        points.append(point)
        return surface.values[point]

    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(space, deterministic=True, n_trials=trials, seed=seed, output_directory=Path(folder))
        HyperparameterOptimizationFacade(scenario, objective, overwrite=True, logging_level=False).optimize()
    logging.disable(logging.NOTSET)
    return points

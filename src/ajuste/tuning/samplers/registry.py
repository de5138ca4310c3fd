"""The samplers by name."""

from __future__ import annotations

from typing import Final

from ajuste.tuning.samplers.gaussian import GaussianSampler
from ajuste.tuning.samplers.plain import GridSampler, RandomSampler
from ajuste.tuning.samplers.sampler import Sampler, SamplerName, Task

TITLES: Final[dict[SamplerName, str]] = {
    "gp": "Gaussian process, expected improvement",
    "tpe": "tree-structured Parzen estimators (Optuna)",
    "cmaes": "CMA-ES (Optuna)",
    "nsga2": "NSGA-II (Optuna)",
    "random": "at random",
    "grid": "grid",
}


def make_sampler(name: SamplerName, task: Task) -> Sampler:
    """The sampler of that name. Optuna, which takes long to load, only where it is wanted."""
    if name == "gp":
        return GaussianSampler(task)
    if name == "random":
        return RandomSampler(task)
    if name == "grid":
        return GridSampler(task)
    from ajuste.tuning.samplers.replayed import ReplayedSampler

    return ReplayedSampler(name, task)

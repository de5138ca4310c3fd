"""A search as a study, a command and a run have it: what it seeks, and what each of its blocks is for."""

from __future__ import annotations

from typing import Final, Literal

from ajuste.model.base import BaseModel

DEFAULT_TRIALS: Final = 80

SamplerName = Literal["gp", "tpe", "cmaes", "nsga2", "random", "grid"]

Phase = Literal["warm-up", "explore", "replicate", "check"]


class Leg(BaseModel):
    """The content of one block: the baseline and ``names``."""

    phase: Phase
    names: tuple[str, ...] = ()


class Search(BaseModel):
    """The search of a run. ``objectives`` are names of metrics, with ``=lower`` or ``=higher`` after those that have no
    better direction by themselves. ``trials`` counts all: those of the baseline too.
    """

    objectives: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    trials: int = DEFAULT_TRIALS
    sampler: SamplerName = "gp"

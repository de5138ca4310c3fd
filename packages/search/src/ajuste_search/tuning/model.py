"""Findings of a search, as a part of the results, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ajuste.model.base import BaseModel
from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.search import Phase
from ajuste_stats.terms import Scale


class SearchStep(BaseModel):
    """A clean trial beside the baseline's of the same block. ``changes`` has for each objective the ratio to it (or the
    difference); ``allowed`` says whether the configuration, by all that is known of it, keeps the constraints.
    """

    configuration: str
    block: int
    phase: Phase
    changes: tuple[float, ...]
    allowed: bool


class KeptLimit(BaseModel):
    """A constraint and a configuration of the check. ``estimate``, ``low`` and ``high`` are of the metric, as a ratio
    to the baseline where it is ``relative``; None where the effect is unknown.
    """

    configuration: str
    text: str
    metric: str
    unit: str
    relative: bool
    bound: float
    estimate: float | None
    low: float | None
    high: float | None
    holds: Literal["yes", "no", "unknown"]


class Importance(BaseModel):
    """The importance of a factor: how much of what varies over the space goes away if it is held fixed, from 0 to 1,
    with the interval that holds 95 % of the surfaces that may be the true one.
    """

    factor: str
    share: float
    low: float
    high: float


class ExpectedMap(BaseModel):
    """The model's expectation over the levels of two factors, all others as in the best configuration: ratios to the
    baseline, or differences, row by row of ``down_levels``.
    """

    down: str
    across: str
    down_levels: tuple[str, ...]
    across_levels: tuple[str, ...]
    expected: tuple[tuple[float, ...], ...]


class Tuning(BaseModel):
    """A search: its ``objectives`` and ``constraints`` as they were given, ``scales`` of the objectives. ``tried``
    counts configurations besides the baseline, ``trials`` all that were planned, of at most ``allowed``. ``chosen`` was
    checked in fresh blocks, from ``first_check`` on: one configuration, or some of the front of several objectives. It
    is the ``winner`` if it kept the constraints during the search, and otherwise only the nearest to them.
    ``best_trial`` is the change that the best single trial of the search showed. ``flat``: no setting that was tried
    makes a difference that matters. ``same`` says which suggestions the kernel made one configuration.
    """

    objectives: tuple[str, ...]
    scales: tuple[Scale, ...]
    constraints: tuple[str, ...]
    sampler: str
    allowed: int
    trials: int
    tried: int
    steps: tuple[SearchStep, ...]
    chosen: tuple[str, ...]
    winner: str | None
    first_check: int | None
    check_blocks: int
    best_trial: float | None
    limits: tuple[KeptLimit, ...]
    importance: tuple[Importance, ...]
    expected: ExpectedMap | None
    flat: bool
    same: tuple[str, ...]

    def not_kept(self, configuration: str) -> tuple[KeptLimit, ...]:
        """Return the constraints that a configuration is not known to keep."""
        return tuple(limit for limit in self.limits if limit.configuration == configuration and limit.holds != "yes")


def tuning_of(results: Results) -> Tuning | None:
    """Return the findings of the search; None of a run without one."""
    return Tuning.model_validate(tuning) if (tuning := results.facets.get("tuning")) else None


@dataclass(frozen=True)
class Standing:
    """``trials`` of ``allowed`` are measured, ``tried`` counts configurations besides the baseline. ``change`` is how
    much worse than the baseline the best of these is on ``metric``: the logarithm of a ratio, or a difference.
    """

    phase: Phase
    trials: int
    allowed: int
    tried: int
    best: str | None
    change: float | None
    as_ratio: bool
    metric: Metric

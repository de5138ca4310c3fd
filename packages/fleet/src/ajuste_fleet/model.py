"""Facts about fleets: how far a canary order came, and what is known of machines like those that measured."""

from __future__ import annotations

from pydantic import Field

from ajuste.model.base import BaseModel
from ajuste.model.results import Results
from ajuste_stats.terms import Scale, Word


class CanaryRecord(BaseModel):
    """The progress of a canary order: ``stages`` say how many machines each may have (``null``: all), ``reached``
    counts them from 1, and each machine was to measure ``each`` blocks. ``stopped`` says what ended it before its end.
    """

    stages: tuple[int | None, ...]
    each: int
    guards: tuple[str, ...] = ()
    reached: int = 1
    machines: int = 0
    stopped: str = ""


class FactGroup(BaseModel):
    """The machines that have ``fact`` in common, against all others: their mean effects. ``p_value`` is of no
    difference, for all facts together. ``also`` are other facts that divide the machines in the same way.
    """

    fact: str
    machines: tuple[str, ...]
    others: int
    estimate: float | None
    others_estimate: float | None
    p_value: float
    also: tuple[str, ...] = ()


class FleetEffect(BaseModel):
    """The effect on all ``machines`` like those that measured: their mean effect with its interval at ``level``, as in
    ``Finding``; the ``spread`` of true effects between machines, one standard deviation (of a ratio as a factor); and
    between which effects a new machine's lies (``new_low``, ``new_high``). ``verdicts`` counts the machines' own.
    ``differing`` is the group whose effect differs for certain, if there is one. ``says`` is a sentence.
    """

    configuration: str
    metric: str
    unit: str
    scale: Scale
    machines: int
    level: float
    estimate: float | None
    low: float | None
    high: float | None
    spread: float | None
    new_low: float | None
    new_high: float | None
    verdicts: dict[Word, int]
    differing: FactGroup | None = Field(default=None, exclude_if=lambda group: group is None)
    says: str


def fleet_of(results: Results) -> tuple[FleetEffect, ...]:
    """Return what holds of machines like those that measured."""
    return tuple(map(FleetEffect.model_validate, results.facets.get("fleet", ())))


def canary_of(results: Results) -> CanaryRecord | None:
    """Return how far a canary order came; None of a run without one."""
    return CanaryRecord.model_validate(record) if (record := results.facets.get("canary")) else None

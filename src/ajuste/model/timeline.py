"""Figures over the time of a trial, which samplers read."""

from __future__ import annotations

from typing import Final, Literal

from ajuste.model.base import BaseModel
from ajuste.model.facet import Facet


class SampledLine(BaseModel):
    """A figure in one trial: ``values`` at ``at_s`` seconds since the workload's start, which ended at ``end_s``.

    Thinned out: between two points that follow each other nothing happened, or nothing that would be seen.
    ``representative``: the trial is the median of its configuration.
    """

    configuration: str
    block: int
    end_s: float
    at_s: tuple[float, ...]
    values: tuple[float, ...]
    representative: bool = False


class TimelineMark(BaseModel):
    """The place of a delay on the representative trial's line."""

    metric: str
    configuration: str
    at_s: float


class SampledFigure(BaseModel):
    """A figure that a sampler read: its ``growth`` since the workload's start, its ``rate`` (each second), or its
    ``value``, in ``unit``. A few trials of each configuration; of many configurations only some.
    """

    source: str
    key: str
    shown: Literal["growth", "rate", "value"]
    unit: str
    lines: tuple[SampledLine, ...]
    marks: tuple[TimelineMark, ...] = ()


TIMELINES: Final = Facet[tuple[SampledFigure, ...]]("timelines", tuple[SampledFigure, ...], ())

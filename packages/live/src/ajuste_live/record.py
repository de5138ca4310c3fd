"""The record of a live experiment: its slices, the metrics over time, and what broke a guard."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from ajuste.model.base import BaseModel
from ajuste.model.facet import Facet
from ajuste.model.live import LIVE

# Figures of trials beside the metrics of a slice: the bounds of what counts of it, in seconds since the run began, 1 if
# it broke a guard, and its place in a stay.
BEGIN: Final = "slice-begin"
END: Final = "slice-end"
BREACH: Final = "slice-guard"
STAYED: Final = "slice-stay"

# Limit of figures: below it the square of a figure is finite as well, or statistics overflow.
LARGEST: Final = 1e150


def is_computable(value: float) -> bool:
    """Return whether ``value`` is a number and not too large for computations."""
    return abs(value) < LARGEST


class LiveSlice(BaseModel):
    """A slice that was carried out: from ``begin_s`` on it counted, until ``end_s``, unless there is a ``flag``."""

    number: int
    block: int
    configuration: str
    begin_s: float
    end_s: float
    flag: str = ""


class LiveLine(BaseModel):
    """A metric over time, in its unit; None between slices."""

    metric: str
    at_s: tuple[float, ...]
    values: tuple[float | None, ...]


class LiveRecord(BaseModel):
    """The record of a live experiment: ``findings`` are sentences on the noise, ``breaches`` what broke a guard, by
    configuration. ``untested`` is a sentence on later costs that were not tested, where something improves.
    """

    slices: tuple[LiveSlice, ...]
    lines: tuple[LiveLine, ...]
    slice_s: float
    washout_s: float
    guards: tuple[str, ...] = ()
    breaches: dict[str, str] = Field(default_factory=dict)
    findings: tuple[str, ...] = ()
    untested: str = Field(default="", exclude_if=lambda untested: not untested)


RECORD: Final = Facet[LiveRecord | None](LIVE, LiveRecord, None, always=False)

"""Diagnostics of a run: what a naive comparison of its trials would have taken for a difference."""

from __future__ import annotations

from typing import Final, Literal

from ajuste.model.base import BaseModel
from ajuste.model.facet import Facet
from ajuste_stats.terms import Kind


class Diagnostic(BaseModel):
    """The result of one diagnostic on one metric, over all configurations together.

    ``value`` is described by ``measures``; ``configuration`` is the one where it is strongest, if it is of single ones.
    ``p_value`` is corrected for the number of configurations but not for that of diagnostics; ``present`` is (Holm).
    ``naive_error`` is how often a t test at 5 % on two batches would find a difference between equals with just this
    in the data; None where it has no influence. ``matters``: it is present, and changes what a naive comparison or the
    verdict says. ``why`` says why Ajuste's verdict is ``verdict_affected`` or not.
    """

    kind: Kind
    metric: str
    measures: str
    value: float
    configuration: str = ""
    p_value: float | None = None
    present: bool
    matters: bool
    says: str
    naive_error: float | None = None
    verdict_affected: bool = False
    why: str


class Naive(BaseModel):
    """The error of a naive comparison. ``error`` is how often Welch's t test at 5 % finds a difference between equals,
    if each is measured ``batch`` times in a row. It is over ``windows`` pieces of what really was measured, with the
    configurations' means taken out.

    ``narrowing`` is by what factor the standard deviation of a difference is smaller within blocks.
    """

    metric: str
    batch: int
    windows: int
    error: float
    narrowing: float | None
    says: str


class Course(BaseModel):
    """The course of a run: how far the mean of each of ``blocks`` is from the mean of all, as a ratio or a difference,
    configurations' means taken out. Of very many blocks some, at even distances.
    """

    metric: str
    scale: Literal["ratio", "difference"]
    blocks: tuple[int, ...]
    values: tuple[float, ...]


class Diagnostics(BaseModel):
    """The diagnostics of a run: all that was looked for; ``level`` is the error rate of all alarms together on clean
    data.
    """

    level: float
    found: tuple[Diagnostic, ...]
    naive: tuple[Naive, ...] = ()
    courses: tuple[Course, ...] = ()


DIAGNOSTICS: Final = Facet[Diagnostics | None]("diagnostics", Diagnostics, None)

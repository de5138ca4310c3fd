"""Histories: one metric over the versions of the kernel, or of a project."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from ajuste.model.base import BaseModel
from ajuste.model.facet import Facet
from ajuste.model.trial import KERNEL_FACTOR
from ajuste_stats.terms import Scale


class VersionPoint(BaseModel):
    """The metric of one version: of a kernel (``level`` as the factor has it, ``version`` such as ``6.12``, its
    ``scheduler``) or of a project (its commit, without a scheduler). In its unit, with what blocks have in common taken
    out.

    ``low`` and ``high`` hold for all points of the history together; None while there are too few blocks.
    """

    configuration: str
    level: str
    version: str
    scheduler: str
    value: float
    low: float | None = None
    high: float | None = None


class VersionChange(BaseModel):
    """A change point: from the version ``before`` to the next that was measured, ``after``. ``change`` is the mean of
    the stretch that begins there against that of the stretch before, a ratio or a difference as the history's ``scale``
    says.
    """

    before: str
    after: str
    change: float


class History(BaseModel):
    """A metric over ``points`` in the order of the versions that are the levels of ``factor``: of kernels of one
    ``flavour``, with other factors ``fixed``.

    ``known`` says whether there is enough to look for ``changes``; what is smaller than the study's smallest effect is
    none.
    """

    metric: str
    scale: Scale
    factor: str = KERNEL_FACTOR
    flavour: str = ""
    fixed: dict[str, str] = Field(default_factory=dict)
    points: tuple[VersionPoint, ...]
    changes: tuple[VersionChange, ...] = ()
    known: bool = False
    level: float
    blocks: int


HISTORIES: Final = Facet[tuple[History, ...]]("histories", tuple[History, ...], ())

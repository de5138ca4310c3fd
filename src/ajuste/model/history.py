"""Histories: one metric over the versions of the kernel."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ajuste.model.metric import Scale


class _Doc(BaseModel):
    model_config = ConfigDict(frozen=True)


class VersionPoint(_Doc):
    """The metric of one kernel (``level`` as the factor has it, ``version`` such as ``6.12``, its ``scheduler``), in
    its unit, with what blocks have in common taken out.

    ``low`` and ``high`` hold for all points of the history together; None while there are too few blocks.
    """

    configuration: str
    level: str
    version: str
    scheduler: str
    value: float
    low: float | None = None
    high: float | None = None


class VersionChange(_Doc):
    """A change point: from the version ``before`` to the next that was measured, ``after``. ``change`` is the mean of
    the stretch that begins there against that of the stretch before, a ratio or a difference as the history's ``scale``
    says.
    """

    before: str
    after: str
    change: float


class History(_Doc):
    """One metric over ``points`` in the order of versions, of kernels of one ``flavour`` with other factors ``fixed``.

    ``known`` says whether there is enough to look for ``changes``; what is smaller than the study's smallest effect is
    none.
    """

    metric: str
    scale: Scale
    flavour: str
    fixed: dict[str, str] = Field(default_factory=dict)
    points: tuple[VersionPoint, ...]
    changes: tuple[VersionChange, ...] = ()
    known: bool = False
    level: float
    blocks: int

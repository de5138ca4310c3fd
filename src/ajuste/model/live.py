"""Live experiments: what a person wants to know of a running service, and what may never happen to it."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from ajuste.model.base import BaseModel
from ajuste.model.metric import Metric
from ajuste_stats.terms import SwitchbackOrder

GuardSign = Literal["<", "<=", ">", ">="]

LIVE: Final = "live"
"""Key of a live experiment in its results: a facet with its ``slices``, the ``breaches`` of guards, and sentences on
what was ``untested``.
"""

# Share of a slice that is its wash-out while it is not known how long the metrics take to respond.
FIRST_WASHOUT: Final = 0.25


class LiveMetric(BaseModel):
    """A metric and where it is read: ``kind`` names a source (a file of ``run.live.sources``), ``where`` is what comes
    after the colon. Of a ``counter`` the growth by second is the figure.
    """

    metric: Metric
    kind: str
    where: str
    counter: bool = Field(default=False, exclude_if=lambda counter: not counter)


class Guard(BaseModel):
    """A condition on ``metric``, as it was given in ``text``: it is ``sign`` ``limit`` (in the metric's unit), or,
    without a sign, at most the share ``limit`` worse than under the baseline.
    """

    text: str
    metric: str
    sign: GuardSign | None
    limit: float


class LiveDesign(BaseModel):
    """Slices of ``slice_s`` seconds, of which the first ``washout_s`` do not count (None: as long as the metrics take
    to respond, once that is known), for at most ``for_s``, in blocks of that ``order``.

    ``watched`` are read for guards and for the record, ``control`` is the figure of the load. Nothing is measured while
    the load average exceeds ``max_load`` or the pressure (a share of the time) ``max_pressure``. With ``stays`` a
    configuration improves only if it also does when it stays: blocks of stays follow.
    """

    metrics: tuple[LiveMetric, ...] = Field(min_length=1)
    watched: tuple[LiveMetric, ...] = ()
    control: LiveMetric | None = None
    guards: tuple[Guard, ...] = ()
    slice_s: float
    washout_s: float | None = None
    for_s: float
    order: SwitchbackOrder = "random"
    max_load: float | None = None
    max_pressure: float | None = None
    stays: bool = Field(default=False, exclude_if=lambda stays: not stays)

    @property
    def first_washout_s(self) -> float:
        """Return the wash-out while it is not known how long the metrics take to respond."""
        return FIRST_WASHOUT * self.slice_s if self.washout_s is None else self.washout_s

    @property
    def all_metrics(self) -> tuple[LiveMetric, ...]:
        """Return everything that is read."""
        return (*self.metrics, *self.watched, *((self.control,) if self.control else ()))


_DURATION: Final = ((86_400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def duration(seconds: float) -> str:
    """Return a duration in the unit that suits it: ``1.5 min`` for 90 seconds."""
    size, unit = next((step for step in _DURATION if seconds >= step[0]), _DURATION[-1])
    return f"{seconds / size:.3g} {unit}"

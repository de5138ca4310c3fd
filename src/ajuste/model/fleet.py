"""The order in which many machines begin to measure one question."""

from __future__ import annotations

from typing import Final

from ajuste.model.base import BaseModel
from ajuste.model.live import Guard

FLEET: Final = "fleet"
"""Key of the progress of an order in the environment of a run."""


class FleetPlan(BaseModel):
    """The order of a fleet: ``stages`` are how many machines may measure, stage by stage; None: all. Each measures
    ``each`` blocks; None: as many as its own verdict takes. With ``cautious`` harm that is proved ends the run, as a
    broken guard does.
    """

    stages: tuple[int | None, ...] = (None,)
    each: int | None = None
    guards: tuple[Guard, ...] = ()
    cautious: bool = False

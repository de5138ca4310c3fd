"""How long a run goes on, also over crashes and reboots, and whatever the clock of the day is set to meanwhile."""

from __future__ import annotations

import time
from typing import Self

from pydantic import ConfigDict

from ajuste.machine.session import boot_id
from ajuste.model.base import BaseModel


class Instant(BaseModel):
    """A moment as three clocks show it: ``up_s`` is the time since ``boot``, also while the machine was suspended, and
    ``day_s`` is that of the day, which anybody can set.
    """

    model_config = ConfigDict(frozen=True)
    boot: str
    up_s: float
    day_s: float

    @classmethod
    def now(cls) -> Self:
        """This very moment."""
        return cls(boot=boot_id(), up_s=time.clock_gettime(time.CLOCK_BOOTTIME), day_s=time.time())

    def earlier(self, seconds: float) -> Self:
        """So long before, by the same clocks."""
        return self.model_copy(update={"up_s": self.up_s - seconds, "day_s": self.day_s - seconds})


def seconds_between(earlier: Instant, later: Instant) -> float:
    """Only a reboot leaves nothing but the time of the day to tell by; nothing takes less than no time."""
    if earlier.boot == later.boot:
        return later.up_s - earlier.up_s
    return max(0.0, later.day_s - earlier.day_s)

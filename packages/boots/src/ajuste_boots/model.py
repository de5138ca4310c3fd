"""The boots of an experiment: what became of each, and where the scatter of its trials comes from."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from ajuste.model.base import BaseModel
from ajuste.model.boot import BOOTS
from ajuste.model.facet import Facet


class KeptBoot(BaseModel):
    """A boot that an experiment asked for. ``round`` counts those of the same state; ``trials`` (block, position,
    attempt) are those that were begun in it. ``boot_id`` is empty while it has not come up.

    ``outcome``: *asked* for; *up*; *cut* short (it came up, and the machine went down by itself); *down*: the kernel
    did not come up.
    """

    number: int
    state: str
    round: int
    asked: str
    outcome: Literal["asked", "up", "cut", "down"] = "asked"
    boot_id: str = ""
    came_up: str = ""
    kernel: str = ""
    command_line: str = ""
    trials: tuple[tuple[int, int, int], ...] = ()


class KeptBoots(BaseModel):
    """The boots of a run, as they are kept. ``each`` is the number of blocks in a boot, after ``warm_up`` blocks."""

    each: int
    warm_up: int
    loader: str
    boots: tuple[KeptBoot, ...] = Field(default=())

    def boot_by_trial(self) -> dict[tuple[int, int, int], int]:
        """Return the boot in which each trial was measured: the last in which it was begun."""
        return {place: boot.number for boot in self.boots for place in boot.trials}


class BootSpread(BaseModel):
    """Sources of the scatter of ``metric`` under ``configuration``: standard deviations ``within`` a boot and
    ``between`` boots, of the logarithm where ``scale`` is ``ratio``, otherwise in the metric's unit; ``share`` is the
    part of the variance that is between boots. With ``of_effect`` it is that of the difference from the baseline.
    """

    configuration: str
    metric: str
    scale: Literal["ratio", "difference"]
    boots: int
    values: int
    within: float | None = None
    between: float | None = None
    share: float | None = None
    of_effect: bool = False


class BootFindings(BaseModel):
    """The boots of a run: ``kept`` has all, ``says`` the findings in sentences."""

    kept: KeptBoots
    spreads: tuple[BootSpread, ...] = ()
    says: tuple[str, ...] = ()


FINDINGS: Final = Facet[BootFindings | None](BOOTS, BootFindings, None)

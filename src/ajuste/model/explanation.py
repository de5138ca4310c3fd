"""Recordings of a configuration, and how its scheduler differed from the baseline's."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from ajuste.model.base import ClosedModel
from ajuste.model.cost import CostComparison, PackedCosts
from ajuste.model.decision import Divergence, PackedDecisions
from ajuste.model.facet import Facet
from ajuste.model.scheduling import Count, Recording


class Recorded(ClosedModel):
    """A trial of ``configuration`` that was carried out to be recorded, with the ``seed`` of that ``block``, on
    ``kernel``. It is no trial of the run: recording takes time. ``wall_ns`` is how long its workload ran; without a
    ``recording`` the ``problem`` says why. ``costs`` are of a further trial, which is not recorded: the same as the one
    of the run, to the instruction; ``costs_problem`` says why there are none, where there could be. So are
    ``decisions``, which are there where somebody asked for them.
    """

    configuration: str
    block: Annotated[int, Field(ge=0)]
    seed: Count
    kernel: str = ""
    wall_ns: Count | None = None
    recording: Recording | None = None
    problem: str = ""
    costs: PackedCosts | None = None
    costs_problem: str = ""
    decisions: PackedDecisions | None = Field(default=None, exclude_if=lambda decisions: decisions is None)
    decisions_problem: str = Field(default="", exclude_if=lambda problem: not problem)


class Explanation(ClosedModel):
    """The differences of the scheduler under ``own.configuration`` from the baseline's, in ``sentences`` that are
    computed from both recordings, what changed most first. ``notes`` say how far they can be trusted. ``costs``
    compares what both cost, and ``divergence`` says where their decisions part, which ``own`` and ``baseline`` have no
    more.
    """

    sentences: tuple[str, ...]
    notes: tuple[str, ...]
    own: Recorded
    baseline: Recorded
    costs: CostComparison | None = None
    divergence: Divergence | None = Field(default=None, exclude_if=lambda divergence: divergence is None)

    @property
    def configuration(self) -> str:
        return self.own.configuration


EXPLANATIONS: Final = Facet[tuple[Explanation, ...]]("explanations", tuple[Explanation, ...], ())

"""A hunt as one document: what ``--json`` prints, and what its report is drawn from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ajuste.model.base import ClosedModel
from ajuste.model.decision import Divergence
from ajuste.model.plan import CpuPause

Outcome = Literal["found", "at-once", "never", "interrupted"]


class TaskThen(ClosedModel):
    """A task at a moment: ``name`` is its program; ``doing`` what, in words."""

    name: str
    doing: str


class PauseThen(ClosedModel):
    """A pause that is needed to show it, what ran on its CPU then, and the function that had just accessed memory which
    tasks share; "" where that is not known.
    """

    pause: CpuPause
    running: str = ""
    after: str = ""


class Story(ClosedModel):
    """The story of the trial that shows it: ``parts`` is where its scheduling parts from that of a trial with the
    same seed and no pauses; ``waiting`` are tasks of the workload that wait at its end.
    """

    pauses: tuple[PauseThen, ...]
    parts: Divergence | None = None
    waiting: tuple[TaskThen, ...] = ()
    notes: tuple[str, ...] = ()


class Found(ClosedModel):
    """A trial that shows the goal: its number, its ``seed``, and the fewest pauses that show it. ``ending`` says how
    it ended; ``replays`` of it were alike to the byte, of so many ``attempts``. ``host_seconds`` are those of guests
    until it was there.
    """

    trial: int = Field(ge=1)
    way: str
    seed: int = Field(ge=0)
    pauses_then: int = Field(ge=0)
    pauses: tuple[CpuPause, ...]
    ending: str
    replays: int = Field(ge=0)
    attempts: int = Field(ge=0)
    minimal: bool
    digest: str
    host_seconds: float


class Hunt(ClosedModel):
    """A hunt: its ``goal``, where it looked, and what came of it.

    ``trials`` were carried out, ``shown_plain`` of ``plain`` ones without pauses showed the goal, ``kinds`` of trials
    ran as none before. ``sites`` are the places at which its tasks share memory, distinguished by what came before; a
    pause was tried after each ``tries_of_site`` times or once more. ``nearest`` is the metric's value that came
    nearest. ``longest_pause_us`` bounds each pause. ``host_seconds`` are the sum of how long guests ran on this
    machine.
    """

    version: Literal[1] = 1
    study: str
    goal: str
    kernel: str
    cpus: int
    outcome: Outcome
    trials: int
    plain: int
    shown_plain: int
    kinds: int
    sites: int = 0
    tries_of_site: int = 0
    run_ms: float
    longest_pause_us: float
    nearest: str = ""
    finding: Found | None = None
    story: Story | None = None
    reproducer: str = ""
    notes: tuple[str, ...] = ()
    host_seconds: float

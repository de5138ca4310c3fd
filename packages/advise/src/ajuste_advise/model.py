"""Advice as one document: what ``--json`` prints and what every report is drawn from."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from ajuste.model.base import ClosedModel
from ajuste.model.cause import Cause
from ajuste.model.verdict import Verdict
from ajuste_search.tuning.model import KeptLimit

Where = Literal[
    "user", "kernel", "other-programs", "interrupts", "waiting", "cpu-wait", "disk-wait", "memory-wait", "idle"
]
"""A part of the time; see ``ajuste_advise.look``."""


class TimeShare(ClosedModel):
    """A part of the elapsed time, as a ``share`` of it: time of CPUs, or time in which some task waited for something.

    Waiting overlaps with running, so the shares of all parts do not add up to 1.
    """

    where: Where
    share: float = Field(ge=0)


class HotSpot(ClosedModel):
    """A function or system call, with its ``share`` of all instructions of the workload."""

    name: str
    share: float = Field(ge=0, le=1)


class Look(ClosedModel):
    """The look at the workload as it is: the run, and what it shows.

    ``elapsed_s`` is the typical elapsed time of a trial, ``spread`` the standard deviation of trials as a share of it;
    ``trial_s`` is how long a trial takes on the host. ``causes`` are those on which settings can act, each with the
    evidence for it in words. ``functions`` (user space and kernel, without what they call) and ``calls`` (system calls,
    faults and interrupts, with what they call) are there of guests under the virtual clock.
    """

    run: str
    metric: str
    elapsed_s: float
    spread: float
    trial_s: float
    shares: tuple[TimeShare, ...]
    causes: dict[Cause, str]
    functions: tuple[HotSpot, ...] = ()
    calls: tuple[HotSpot, ...] = ()


Reason = Literal["cause", "idle", "absent", "locked", "risk", "time"]
"""The reason why a setting was not tried: it acts on nothing that takes time here; it has no chance to matter; the
machine does not have it; it cannot be changed; its values are a risk; there was no time.
"""


class Untried(ClosedModel):
    """A setting that was not tried, and why in words."""

    setting: str
    why: Reason
    words: str


class Candidate(ClosedModel):
    """A setting to try, with the ``levels`` to try beside the present one, the most promising first. ``first``: it
    often matters a lot, so it comes before the others.
    """

    setting: str
    title: str
    causes: tuple[Cause, ...]
    levels: tuple[str, ...]
    first: bool = False
    note: str = ""


class Tried(ClosedModel):
    """A level that was tried by itself, and what the screen found of it on the objective. ``gain`` is how much better
    it looks, as a share of the baseline: 0.31 is 31 % better. ``keeps``: it seems to keep the constraints.
    """

    setting: str
    level: str
    verdict: Verdict | None = None
    gain: float = 0.0
    problem: str = ""
    keeps: bool = True


def gain(verdict: Verdict) -> float:
    """Return how much better its estimate is, as a share of the baseline; 0 without one."""
    return better_by(verdict, verdict.estimate) or 0.0


def better_by(verdict: Verdict, value: float | None) -> float | None:
    """Return how much better the verdict's metric is with an effect of ``value``, as a share of the baseline."""
    if value is None:
        return None
    if verdict.scale == "ratio":
        grown = value - 1
    else:
        # Of a baseline of nothing, any difference is all there is.
        grown = value / abs(verdict.old) if verdict.old else math.copysign(float(value != 0), value)
    return -grown if verdict.direction == "lower" else grown


class Line(ClosedModel):
    """A line of the advice. ``share`` says in words what it contributes, ``note`` what it costs or risks."""

    setting: str
    title: str
    level: str
    share: str = ""
    note: str = ""


StageName = Literal["look", "screen", "search", "ablation", "proof"]


class Stage(ClosedModel):
    """A run that the advice rests on, of so many ``blocks``; ``failed`` trials count among its ``trials``."""

    name: StageName
    run: str
    trials: int
    blocks: int
    failed: int = 0
    answer: str


class Advice(ClosedModel):
    """The advice on a workload.

    ``lines`` is what to change, empty where nothing is proved to help; ``proof`` is the verdict of fresh blocks on
    all lines together on the objective, and ``others`` are those on the other metrics; ``limits`` are the
    constraints, and whether they hold. ``at_most`` is the largest
    improvement that a setting by itself may still have, as a share, where all that were tried are known that well.
    """

    schema_version: int = 1
    workload: str
    answer: str
    look: Look
    candidates: tuple[Candidate, ...]
    untried: tuple[Untried, ...]
    tried: tuple[Tried, ...]
    lines: tuple[Line, ...]
    proof: Verdict | None = None
    others: tuple[Verdict, ...] = ()
    limits: tuple[KeptLimit, ...] = ()
    why: tuple[str, ...] = ()
    at_most: float | None = None
    stages: tuple[Stage, ...]
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

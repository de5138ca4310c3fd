"""The scheduler's work beside a workload: the figures that the agent makes of the kernel's own events.

This module and ``native/agent/src/trace/recording.rs`` describe the same documents. All times are in nanoseconds.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from ajuste.model.base import ClosedModel

_MOST_CLASSES: Final = 256
_MOST_QUEUES: Final = 100_000
_MOST_NAMED: Final = 20
_LONGEST_NAME: Final = 16

Part = Literal["workload", "background", "other"]
Count = Annotated[int, Field(ge=0, lt=2**64)]
# Name of a command as the kernel has it: the program may have chosen any.
Name = Annotated[str, Field(max_length=_LONGEST_NAME)]


class Spread(ClosedModel):
    """Durations: how many, their sum, exact quantiles, and a ``histogram`` of the least duration of each class and
    how many are in it; there are four classes in every doubling. All 0 where there are none.
    """

    count: Count
    total_ns: Count
    p50_ns: Count
    p95_ns: Count
    p99_ns: Count
    max_ns: Count
    histogram: tuple[tuple[Count, Count], ...] = Field(max_length=_MOST_CLASSES)

    @property
    def mean_ns(self) -> float:
        return self.total_ns / self.count if self.count else 0.0


class Switches(ClosedModel):
    """Counts of how often tasks left the CPU. Those that wanted to go on: ``by_wakeup`` made way for one that woke up,
    ``by_turn`` had used up their time, gave way (sched_yield) or were sent elsewhere. The others waited for something
    (``slept``; ``blocked`` where no signal ends it, mostly for a disk), were ``stopped``, or ``exited``.
    """

    by_wakeup: Count
    by_turn: Count
    slept: Count
    blocked: Count
    stopped: Count
    exited: Count

    @property
    def total(self) -> int:
        return self.preempted + self.slept + self.blocked + self.stopped + self.exited

    @property
    def preempted(self) -> int:
        return self.by_wakeup + self.by_turn


class Behaviour(ClosedModel):
    """The tasks of one part: ``latency`` is from being woken to running, ``runs`` from being given the CPU to leaving
    it; ``wait_ns`` is all the time in which they could have run and did not.
    """

    tasks: Count
    switches: Switches
    wakeups: Count
    migrations: Count
    run_ns: Count
    wait_ns: Count
    latency: Spread
    runs: Spread


class Share(ClosedModel):
    """The time for which a command had a CPU, and how often it left one."""

    command: Name
    part: Part
    run_ns: Count
    switches: Count


class Preemption(ClosedModel):
    """A count of how often a task of the workload, called ``preempted``, made way for one of that ``part`` called
    ``by`` though it could go on.
    """

    preempted: Name
    by: Name
    part: Part
    count: Count


class Recording(ClosedModel):
    """The recording from the workload's start to its end, or as long as there was room: then ``covered_ns`` is less
    than ``span_ns``, and so many events were ``lost``.

    ``queue`` tells for how long so many tasks could run on a CPU, the one that did run counted; ``idle_ns`` is of all
    ``cpus`` together. ``shares`` and ``preemptions`` are the greatest, the greatest first.
    """

    span_ns: Count
    covered_ns: Count
    events: Count
    lost: Count
    buffer_bytes: Count
    cpus: Count
    idle_ns: Count
    workload: Behaviour
    background: Behaviour
    queue: tuple[tuple[Count, Count], ...] = Field(max_length=_MOST_QUEUES)
    shares: tuple[Share, ...] = Field(max_length=_MOST_NAMED)
    preemptions: tuple[Preemption, ...] = Field(max_length=_MOST_NAMED)

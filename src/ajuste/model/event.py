"""The events: what the agent says while it carries out a plan, one JSON document a line.

This module and ``native/agent/src/event.rs`` describe the same lines; ``contract/events`` is checked by both sides.
Every event carries ``at_ns``, CLOCK_MONOTONIC_RAW of the machine that is measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter

from ajuste.model.base import ClosedModel
from ajuste.model.plan import SamplerSource
from ajuste.model.scheduling import Recording

Role = Literal["workload", "background", "before", "after"]


class _Event(ClosedModel):
    at_ns: int = Field(ge=0)


class Hello(_Event):
    """The first event: who speaks and from what machine. ``kernel`` is ``uname -r``, ``build`` is ``uname -v``."""

    event: Literal["hello"] = "hello"
    version: int
    agent: str
    kernel: str
    build: str
    machine: str
    cpus: int
    memory_bytes: int
    guest: bool


class Gate(_Event):
    """A guest is ready for its plan. The machine stops here, a snapshot may be taken, and any number of trials
    start from it.
    """

    event: Literal["gate"] = "gate"


class Accepted(_Event):
    """The plan was understood. Events are counted from this one (see ``End``)."""

    event: Literal["accepted"] = "accepted"
    id: str


class ReadBack(_Event):
    """The value of a tunable, without the final newline; ``error`` instead where it cannot be read."""

    event: Literal["read"] = "read"
    tunable: str
    value: str | None = None
    error: str | None = None


class Written(_Event):
    """A tunable was written. ``after`` is what was read back: it differs from ``asked`` where the kernel clamped
    or rounded.
    """

    event: Literal["written"] = "written"
    tunable: str
    asked: str
    before: str
    after: str


class Started(_Event):
    """A process was started. ``index`` counts the commands of a role from 0; the workload's is 0."""

    event: Literal["started"] = "started"
    role: Role
    index: int
    pid: int


class Loaded(_Event):
    """The background load is there, or was waited for in vain. Said just before the workload starts.

    ``settled``: its ``processes`` and their use of the CPUs have settled, where they had to. ``waited_ns`` since the
    start of the last load. ``used_ns``: the CPU time that each load's first process has used until now.
    """

    event: Literal["loaded"] = "loaded"
    settled: bool
    waited_ns: int = Field(ge=0)
    processes: int = Field(ge=0)
    used_ns: tuple[Annotated[int, Field(ge=0)], ...]


class Output(_Event):
    """The output of a process on one stream, after it ended; bytes that are not UTF-8 became U+FFFD."""

    event: Literal["output"] = "output"
    role: Role
    index: int
    stream: Literal["stdout", "stderr"]
    text: str
    dropped_bytes: int = 0


class Exited(_Event):
    """A process ended, with what wait4(2) says of it and of the children it waited for.

    ``wall_ns`` from just before its exec, by its own clock, to its end, by the kernel's note where there is one: never
    less than what one process used the CPU for. CPU times count from the same moment. Exactly one of ``exit_code`` and
    ``signal`` is set. The background load is killed at the end of the workload: ``signal`` 9 is its ordinary end, and
    its figures are those of its whole life (``Loaded`` has those before the workload).
    """

    event: Literal["exited"] = "exited"
    role: Role
    index: int
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    wall_ns: int
    user_ns: int
    system_ns: int
    voluntary_switches: int
    involuntary_switches: int
    minor_faults: int
    major_faults: int
    peak_rss_bytes: int


class Counter(_Event):
    """A perf event of the workload and its children. Either ``value``, or ``not_supported`` with the reason: never
    a false 0.

    ``running_ns`` of ``enabled_ns`` were really counted; the value is already scaled by their ratio.
    """

    event: Literal["counter"] = "counter"
    name: str
    value: int | None = None
    enabled_ns: int = 0
    running_ns: int = 0
    not_supported: str | None = None


class Sample(_Event):
    """A reading of a sampler at ``at_ns``: figures by name, as the kernel counts them.

    Said after the observation, all in the order of time. Each sampler is read just before the workload's start, at
    multiples of its interval from then on, just after the workload's end, and at the end of the observation.
    """

    event: Literal["sample"] = "sample"
    source: SamplerSource
    values: dict[str, Annotated[int, Field(ge=0)]]


class Sampled(_Event):
    """The account of the sampler of that ``index`` in the plan, sent after all samples.

    ``readings`` samples are of it; for ``skipped`` times it was too late. ``full``: the room for the readings of all
    samplers was used up, and the rest was not read. ``not_supported``: there is nothing to read, and why.
    """

    event: Literal["sampled"] = "sampled"
    index: int = Field(ge=0)
    source: SamplerSource
    readings: int = Field(ge=0)
    skipped: int = Field(default=0, ge=0)
    full: bool = False
    not_supported: str | None = None


class Traced(_Event):
    """A recording of what the scheduler did beside the workload, sent last of what was measured; or ``not_supported``,
    and why.
    """

    event: Literal["traced"] = "traced"
    recording: Recording | None = None
    not_supported: str | None = None


class Paused(_Event):
    """Somebody did not run for up to ``paused_ns`` although it wanted to (host only): it was stopped, its container was
    frozen, or the machine slept. What was measured meanwhile is too long. Said once of each ``who``, of the longest.
    """

    event: Literal["paused"] = "paused"
    who: Literal["agent", "workload", "background", "machine"]
    paused_ns: int = Field(ge=0)


class Restored(_Event):
    """A place has its old value again (host only). ``found`` was there just before: it differs from what had been read
    back after the write where somebody else changed it during the trial. ``value`` was read back after restoring.
    """

    event: Literal["restored"] = "restored"
    tunable: str
    found: str
    value: str


class Journal(_Event):
    """The outcome of a journal that a session had left behind (``ajuste-agent restore``).

    ``restored``: everything is as it was, and the journal was removed. ``void``: nothing in it holds any more (it is of
    an earlier boot, or nothing was changed); it was removed, and nothing was touched. ``gone``: a guardian at work has
    removed it meanwhile. ``held``: its session is still at work. ``kept``: something could not be put back, as
    ``failed`` events before this one say. ``damaged``: lines of it cannot be read. ``unknown``: it cannot be read, or
    it was deleted. ``foreign``: it is of another machine or of a boot that is not known here, and left alone.
    ``malformed``: it is no journal, or not one that can be trusted.
    """

    event: Literal["journal"] = "journal"
    path: str
    state: Literal["restored", "void", "gone", "held", "kept", "damaged", "unknown", "foreign", "malformed"]
    message: str | None = None


class Failed(_Event):
    """The plan could not be carried out. ``stage``: boot, plan, journal, read, write, scratch, before, background,
    workload, counters, samplers, after, restore.
    """

    event: Literal["failed"] = "failed"
    stage: str
    message: str
    tunable: str | None = None


class End(_Event):
    """The last event. ``events`` is how many came before it since (and with) ``accepted``: a stream that lost one is
    known as such.
    """

    event: Literal["end"] = "end"
    id: str
    ok: bool
    events: int


Event = Annotated[
    Hello
    | Gate
    | Accepted
    | ReadBack
    | Written
    | Started
    | Loaded
    | Output
    | Exited
    | Counter
    | Sample
    | Sampled
    | Traced
    | Paused
    | Restored
    | Journal
    | Failed
    | End,
    Field(discriminator="event"),
]

Kind = TypeVar("Kind", bound=_Event)


class EventsByKind:
    """The events of a trial, those of a kind together: there are few of each, and they are needed often."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._by_kind: dict[type[_Event], list[Any]] = {}
        for event in events:
            self._by_kind.setdefault(type(event), []).append(event)

    def of(self, kind: type[Kind]) -> list[Kind]:
        """Return the events of a kind, in the order in which they came."""
        return self._by_kind.get(kind, [])


_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))


def parse_event(line: str | bytes) -> Event:
    """Parse one line. Raises ``pydantic.ValidationError`` for anything that is not exactly one known event."""
    return _ADAPTER.validate_json(line)

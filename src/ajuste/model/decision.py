"""Decisions of the scheduler of a guest, one after the other, from the workload's start to its end; and where two such
streams part.

``native/lens`` writes these documents.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from ajuste.model.base import ClosedModel
from ajuste.model.cost import Address, Count, Role, packed, unpacked

# Decisions that the lens keeps, the first ones of a trial; it counts the others.
MOST_DECISIONS: Final = 500_000
_MOST_PATHS: Final = 20_000
_LONGEST_PATH: Final = 48
_MOST_TASKS: Final = 200_000
_LONGEST_NAME: Final = 200

# A task leaves a CPU and another one comes; a task is woken; a new one may run; one has to make way; the timer
# interrupts.
DecisionKind = Literal["switch", "wakeup", "new", "resched", "timer"]
KINDS: Final = get_args(DecisionKind)
Number = Annotated[int, Field(ge=0, lt=2**31)]
NumberOrNone = Annotated[int, Field(ge=-1, lt=2**31)]
Name = Annotated[str, Field(max_length=_LONGEST_NAME)]


class DecisionTask(ClosedModel):
    """A task; ``number`` is in the order in which tasks were first seen, ``parent`` the one that made it, ``birth`` how
    many that one had made before. ``name`` is its program, or what a task of the kernel carries out; "" where not
    known.
    """

    number: Number
    parent: Number | None
    role: Role
    birth: Number
    name: Name = ""


def _goes_back(figures: Iterable[int]) -> bool:
    return any(later < earlier for earlier, later in pairwise(figures))


class SystemCallColumns(ClosedModel):
    """System calls column by column, in the order in which they begin: whose, which function carries it out, after how
    many instructions of the window and how much idle time it begins and ends (None: not before the window's end).
    With CPUs that run at once ``at_ns`` and ``ended_at_ns`` say when, by the guest's clock. ``functions`` are addresses
    as the lens writes them, and places among the named functions later. ``left_out`` came after the last one that is
    kept.
    """

    tasks: tuple[Number, ...] = Field((), max_length=MOST_DECISIONS)
    functions: tuple[Address, ...] = ()
    at: tuple[Count, ...] = ()
    idle_ns: tuple[Count, ...] = ()
    ended_at: tuple[Count | None, ...] = ()
    ended_idle_ns: tuple[Count | None, ...] = ()
    at_ns: tuple[Count, ...] = Field((), exclude_if=lambda column: not column)
    ended_at_ns: tuple[Count | None, ...] = Field((), exclude_if=lambda column: not column)
    left_out: Count = 0

    def __len__(self) -> int:
        return len(self.tasks)

    @model_validator(mode="after")
    def _columns_fit(self) -> Self:
        columns = [self.functions, self.at, self.idle_ns, self.ended_at, self.ended_idle_ns]
        if self.at_ns or self.ended_at_ns:
            columns += [self.at_ns, self.ended_at_ns]
        if any(len(column) != len(self.tasks) for column in columns):
            raise ValueError("the columns of the system calls must be equally long")
        begins, ends = zip(self.at, self.idle_ns, strict=True), zip(self.ended_at, self.ended_idle_ns, strict=True)
        for (at, idle_ns), (ended_at, ended_idle_ns) in zip(begins, ends, strict=True):
            if (ended_at is None) != (ended_idle_ns is None):
                raise ValueError("a system call ends without a time")
            if ended_at is not None and ended_idle_ns is not None and (ended_at < at or ended_idle_ns < idle_ns):
                raise ValueError("a system call ends before it begins")
        for at_ns, ended_at_ns, ended_at in zip(self.at_ns, self.ended_at_ns, self.ended_at, strict=False):
            if (ended_at is None) != (ended_at_ns is None) or (ended_at_ns is not None and ended_at_ns < at_ns):
                raise ValueError("a system call ends without a time, or before it begins")
        if _goes_back(self.at) or _goes_back(self.idle_ns) or _goes_back(self.at_ns):
            raise ValueError("the system calls are not in the order of their time")
        return self


class DecisionStream(ClosedModel):
    """Decisions column by column: the place of each one's kind in ``KINDS``, its CPU, how many instructions of the
    window were carried out before it, for how long the guest had been idle by then, who was ``running``, the ``others``
    (who comes, is woken, or has to make way; -1 for the timer), whether who leaves ``stays`` able to run, and the
    place of its path of functions (``ways``; -1 where none was kept).

    ``left_out`` decisions came after the last one that is kept. Without ``has_clock`` idle time is not known, and 0.
    With CPUs that run at once ``at_ns`` says when each was, by the guest's clock, and ``ended_ns`` when the window
    ended.
    """

    has_clock: bool
    instructions: Count
    ended_ns: Count | None = Field(None, exclude_if=lambda ended: ended is None)
    left_out: Count
    tasks: tuple[DecisionTask, ...] = Field(max_length=_MOST_TASKS)
    kinds: tuple[Annotated[int, Field(ge=0, lt=len(KINDS))], ...] = Field(max_length=MOST_DECISIONS)
    cpus: tuple[Annotated[int, Field(ge=0, lt=64)], ...]
    at: tuple[Count, ...]
    idle_ns: tuple[Count, ...]
    at_ns: tuple[Count, ...] = Field((), exclude_if=lambda column: not column)
    running: tuple[Number, ...]
    others: tuple[NumberOrNone, ...]
    stays: tuple[bool, ...]
    ways: tuple[NumberOrNone, ...]
    calls: SystemCallColumns = SystemCallColumns()

    def __len__(self) -> int:
        return len(self.kinds)

    @model_validator(mode="after")
    def _columns_fit(self) -> Self:
        columns = [self.cpus, self.at, self.idle_ns, self.running, self.others, self.stays, self.ways]
        columns += [self.at_ns] if self.at_ns else []
        if any(len(column) != len(self.kinds) for column in columns):
            raise ValueError("the columns of the decisions must be equally long")
        if any(map(_goes_back, (self.at, self.idle_ns, self.at_ns))) or max(self.at, default=0) > self.instructions:
            raise ValueError("the decisions are not in the order of their time")
        known = {task.number for task in self.tasks}
        if len(known) < len(self.tasks):
            raise ValueError("two tasks have the same number")
        if any(task.parent is not None and not (task.parent in known and task.parent < task.number)
               for task in self.tasks):  # fmt: skip
            raise ValueError("a task is younger than the one that made it")
        if not known.issuperset(self.running) or not (known | {-1}).issuperset(self.others):
            raise ValueError("a decision is about a task that is not there")
        if not known.issuperset(self.calls.tasks):
            raise ValueError("a system call is of a task that is not there")
        timer = KINDS.index("timer")
        if any((kind == timer) != (other == -1) for kind, other in zip(self.kinds, self.others, strict=True)):
            raise ValueError("every decision but the timer's is about a task")
        return self


class Decisions(DecisionStream):
    """The decisions as the lens writes them. ``paths`` are the addresses of functions, the innermost first."""

    version: Literal[1]
    paths: tuple[Annotated[tuple[Address, ...], Field(max_length=_LONGEST_PATH)], ...] = Field(max_length=_MOST_PATHS)

    @model_validator(mode="after")
    def _paths_are_there(self) -> Self:
        if max(self.ways, default=-1) >= len(self.paths):
            raise ValueError("a decision has a path that is not there")
        return self


class NamedDecisions(DecisionStream):
    """The decisions with the names of ``functions``, whose places the ``paths`` have. An instruction takes
    ``instruction_ns``.
    """

    instruction_ns: Annotated[int, Field(ge=1, le=16)]
    functions: tuple[Name, ...]
    paths: tuple[Annotated[tuple[Number, ...], Field(max_length=_LONGEST_PATH)], ...] = Field(max_length=_MOST_PATHS)

    @model_validator(mode="after")
    def _paths_are_there(self) -> Self:
        if max(self.ways, default=-1) >= len(self.paths):
            raise ValueError("a decision has a path that is not there")
        if max((max(path, default=-1) for path in self.paths), default=-1) >= len(self.functions):
            raise ValueError("a path has a function that is not there")
        if max(self.calls.functions, default=-1) >= len(self.functions):
            raise ValueError("a system call has a function that is not there")
        return self

    def time_ns(self, place: int) -> int:
        """Return the time from the workload's start to each decision, by the guest's clock."""
        if self.at_ns:
            return self.at_ns[place]
        return self.at[place] * self.instruction_ns + self.idle_ns[place]

    @property
    def whole_ns(self) -> int:
        """Return the time from the workload's start to its end, by the guest's clock."""
        if self.ended_ns is not None:
            return max(self.ended_ns, self.at_ns[-1] if self.at_ns else 0)
        return self.instructions * self.instruction_ns + (self.idle_ns[-1] if len(self) else 0)

    def call_ns(self, place: int) -> tuple[int, int | None]:
        """Return when a system call begins and ends, in the time of ``time_ns``."""
        if self.calls.at_ns:
            return self.calls.at_ns[place], self.calls.ended_at_ns[place]
        ended_at, ended_idle_ns = self.calls.ended_at[place], self.calls.ended_idle_ns[place]
        begins_ns = self.calls.at[place] * self.instruction_ns + self.calls.idle_ns[place]
        if ended_at is None or ended_idle_ns is None:
            return begins_ns, None
        return begins_ns, ended_at * self.instruction_ns + ended_idle_ns

    @cached_property
    def other_cpus(self) -> tuple[int | None, ...]:
        """Return for each decision the last CPU of its other task, where that is not the deciding one."""
        in_order = list(zip(self.kinds, self.cpus, self.running, self.others, strict=True))
        # Who runs when a CPU first decides has been there from the start.
        first = {cpu: running for _, cpu, running, _ in reversed(in_order)}
        had = {running: cpu for cpu, running in first.items()}
        cpus: list[int | None] = []
        for kind, cpu, running, other in in_order:
            last = had.get(other, cpu)
            cpus.append(last if last != cpu else None)
            had[running] = cpu
            if KINDS[kind] == "switch":
                had[other] = cpu
        return tuple(cpus)

    def path(self, place: int) -> tuple[str, ...]:
        """Return the names of the functions that led to a decision, the outermost first."""
        way = self.ways[place]
        return tuple(self.functions[function] for function in reversed(self.paths[way])) if way >= 0 else ()


# Decisions, compressed where they are written.
PackedDecisions = Annotated[
    NamedDecisions, BeforeValidator(unpacked(NamedDecisions, "decisions")), PlainSerializer(packed, return_type=str)
]


# Where two streams part.


class DecisionPoint(ClosedModel):
    """A decision: when by the guest's clock since the workload's start, and after how many instructions;
    who was ``running``, the ``other`` task ("" for the timer), and the functions that led to it, the outermost first.
    ``other_cpu`` is the CPU that the other one had last, where that was not this one.
    """

    kind: DecisionKind
    cpu: Number
    other_cpu: Number | None = None
    time_ns: Count
    instructions: Count
    running: str
    other: str
    stays: bool
    path: tuple[str, ...]


class DecisionRun(ClosedModel):
    """A task has a CPU: from when to when, in nanoseconds since the last decision in common."""

    cpu: Number
    task: str
    begin_ns: int
    end_ns: int


class DecisionMark(ClosedModel):
    """A decision between switches, about a task, in nanoseconds since the last decision in common."""

    cpu: Number
    kind: DecisionKind
    task: str
    at_ns: int


class DecisionLane(ClosedModel):
    """The decisions of one of the two: how many in all, those where they part and right after (``following``), and who
    runs around that place.
    """

    decisions: Count
    following: tuple[DecisionPoint, ...]
    runs: tuple[DecisionRun, ...]
    marks: tuple[DecisionMark, ...]

    @property
    def first(self) -> DecisionPoint | None:
        """Return the lane's decision where they part."""
        return self.following[0] if self.following else None


class DecisionSpread(ClosedModel):
    """The course of two streams after they parted, as the baseline shows it: how many decisions come ``after``, how
    many of those (``differ``) and of the first ``soon`` have no counterpart, after how many decisions and nanoseconds
    some in a row are ``alike_again``, and whether the two decide alike at their end (``for_good``).
    """

    after: Count
    differ: Count
    soon: Count
    differ_soon: Count
    alike_again: Count | None
    alike_again_ns: Count | None
    for_good: bool


class DecisionTaskNamed(ClosedModel):
    """A task as it is ``called`` here, what it is for, its program or what it carries out, and who made it."""

    called: str
    role: Role
    name: Name
    made_by: str


class Divergence(ClosedModel):
    """The place where two trials with one seed part: after so many decisions ``alike``, the timer's not counted.
    ``before`` are the last ones in common, as in the baseline. Where they never part, neither has a ``first``, and
    there is no ``spread``. ``sentences`` say it. ``cpus`` are how many of the guest's decide.
    """

    sentences: tuple[str, ...]
    cpus: Count = 1
    alike: Count
    before: tuple[DecisionPoint, ...]
    baseline: DecisionLane
    own: DecisionLane
    spread: DecisionSpread | None
    tasks: tuple[DecisionTaskNamed, ...]
    notes: tuple[str, ...] = ()

"""Divergence of two trials with one seed: the scheduler's first decision that differs, and how that spreads. Pure.

What counts is the decision: its kind, its CPU and its tasks. When it was taken does not: kernels and settings differ
in their instructions long before they differ in what they decide. So the timer's interrupts, which come by the clock,
are no decisions here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from ajuste.model.cost import ROLES
from ajuste.model.decision import (
    KINDS,
    DecisionLane,
    DecisionMark,
    DecisionPoint,
    DecisionRun,
    DecisionSpread,
    DecisionTask,
    DecisionTaskNamed,
    Divergence,
    NamedDecisions,
)
from ajuste.model.wording import amount, number, percent

# Which tasks and decisions of two trials are the same, in the streams of their schedulers. Pure.


IDLE: Final = "idle"
_SWITCH: Final = KINDS.index("switch")
_TIMER: Final = KINDS.index("timer")
# That many decisions in a row, which come once in each stream, are taken for the same.
_GRAM: Final = 4

Key = tuple[int, int, int, int]
"""A decision: its kind, its CPU, who runs and who else it is about."""

# Decisions that are listed after two streams have parted, and before.
_FOLLOWING: Final = 6

_BEFORE: Final = 4

# Switches that are drawn before and after; a longer run is drawn for that many times that time.
_SWITCHES_BEFORE: Final = 5

_SWITCHES_AFTER: Final = 7
_LONGER: Final = 8
_MOST_NEAR: Final = 400
_SOON: Final = 100

# After that many alike in a row, two streams have come together.
_AGAIN: Final = 16

_LONGEST_PATH: Final = 8
_TIMER_FUNCTION: Final = "sysvec_apic_timer_interrupt"
_INTERRUPTS: Final = ("asm_sysvec_", "asm_common_interrupt", "irq_entries_start", "common_interrupt")


def decision_places(stream: NamedDecisions) -> list[int]:
    """Return the places of all decisions but the timer's, which come by the clock."""
    return [place for place, kind in enumerate(stream.kinds) if kind != _TIMER]


class Pairing:
    """The tasks of one stream that correspond to those of the other.

    Tasks are matched by who made them and when, or by role and name, or by CPU if idle. Tasks at the same place of
    decisions that are alike are the same.
    """

    def __init__(self, baseline: NamedDecisions, other: NamedDecisions) -> None:
        self._streams = (baseline, other)
        self._tasks = tuple({task.number: task for task in stream.tasks} for stream in self._streams)
        self._idle = tuple(map(_idle_cpus, self._streams))
        self._pairs: dict[int, int] = {}
        self._taken: dict[int, int] = {}
        self._ids: tuple[dict[int, int], ...] = ()

    def alike_until(self, baseline: Sequence[int], other: Sequence[int]) -> int:
        """Return how many decisions at those places are alike from the first on."""
        count = 0
        for first, second in zip(baseline, other, strict=False):
            if not self._is_alike(first, second):
                break
            count += 1
        self._ids = self._identified()
        return count

    def _is_alike(self, first_place: int, second_place: int) -> bool:
        first, second = self._streams
        return (
            (first.kinds[first_place], first.cpus[first_place])
            == (second.kinds[second_place], second.cpus[second_place])
            and self._is_same(first.running[first_place], second.running[second_place])
            and self._is_same(first.others[first_place], second.others[second_place])
        )

    def _is_same(self, first: int, second: int) -> bool:
        # Pair the tasks, and those that made them, if they fit and are not paired yet.
        fitting: list[tuple[int, int]] = []
        while first not in self._pairs or second not in self._taken:
            task, counterpart = self._tasks[0][first], self._tasks[1][second]
            if first in self._pairs or second in self._taken or not _fits(task, counterpart):
                return False
            if len({idle[task] for idle, task in zip(self._idle, (first, second), strict=True) if task in idle}) > 1:
                return False
            fitting.append((first, second))
            if task.parent is None or counterpart.parent is None:
                break
            first, second = task.parent, counterpart.parent
        else:
            if self._pairs[first] != second:
                return False
        for pair in fitting:
            self._pairs[pair[0]] = pair[1]
            self._taken[pair[1]] = pair[0]
        return True

    def _identified(self) -> tuple[dict[int, int], ...]:
        ids: dict[tuple[object, ...], int] = {}
        ids_by_task: tuple[dict[int, int], dict[int, int]] = ({}, {})
        for which, tasks in enumerate(self._tasks):
            seen: Counter[tuple[str, str]] = Counter()
            for task in sorted(tasks.values(), key=lambda task: task.number):
                known = self._taken.get(task.number) if which else task.number
                if known in self._pairs:
                    key: tuple[object, ...] = ("pair", known)
                elif task.number in self._idle[which]:
                    key = (task.role, self._idle[which][task.number])
                elif task.parent is not None:
                    key = (ids_by_task[which][task.parent], task.birth)
                else:
                    key = (task.role, task.name, seen[task.role, task.name])
                    seen[task.role, task.name] += 1
                ids_by_task[which][task.number] = ids.setdefault(key, len(ids))
        return ids_by_task

    def keys(self, which: int, places: Iterable[int]) -> list[Key]:
        """Return the decisions at ``places`` of a stream; those that are alike in both are equal."""
        stream, ids = self._streams[which], self._ids[which]
        return [(stream.kinds[at], stream.cpus[at], ids[stream.running[at]], ids[stream.others[at]]) for at in places]

    def identity(self, which: int, task: int) -> int:
        return self._ids[which][task]


def _idle_cpus(stream: NamedDecisions) -> dict[int, int]:
    idle = {task.number for task in stream.tasks if task.role == IDLE}
    cpus: dict[int, int] = {}
    for kind, cpu, running, other in zip(stream.kinds, stream.cpus, stream.running, stream.others, strict=True):
        if running in idle:
            cpus[running] = cpu
        if kind == _SWITCH and other in idle:
            cpus[other] = cpu
    return cpus


def _fits(task: DecisionTask, other: DecisionTask) -> bool:
    if (task.role, task.parent is None) != (other.role, other.parent is None):
        return False
    if task.parent is not None:
        return task.birth == other.birth
    return task.role != "kernel" or not task.name or not other.name or task.name == other.name


class TaskNames:
    """Names of the tasks of both streams: by role, numbered by their first decisions; all idle tasks share one."""

    def __init__(self, baseline: NamedDecisions, other: NamedDecisions, pairing: Pairing) -> None:
        self._pairing = pairing
        self._streams = (baseline, other)
        plain: dict[int, str] = {}
        self._tasks: dict[int, tuple[DecisionTask, int]] = {}
        for which, stream in enumerate(self._streams):
            tasks = {task.number: task for task in stream.tasks}
            in_order = chain.from_iterable(zip(stream.running, stream.others, strict=True))
            for task in dict.fromkeys(chain(in_order, tasks)):
                if task >= 0:
                    identity, role, name = pairing.identity(which, task), tasks[task].role, tasks[task].name
                    self._tasks.setdefault(identity, (tasks[task], which))
                    plain.setdefault(identity, role if role != "kernel" else name or "kernel task")
        counts, numbers = Counter(plain.values()), Counter[str]()
        self._called: dict[int, str] = {}
        self._first: dict[str, tuple[DecisionTask, int]] = {}
        for identity, name in plain.items():
            numbers[name] += 1
            called = f"{name} #{numbers[name]}" if counts[name] > 1 and name != IDLE else name
            self._called[identity] = called
            self._first.setdefault(called, self._tasks[identity])

    def all(self) -> dict[str, DecisionTask]:
        """Return every task of both streams by its name."""
        return {called: task for called, (task, _) in self._first.items()}

    def of(self, which: int) -> Callable[[int], str]:
        return lambda task: "" if task < 0 else self._called[self._pairing.identity(which, task)]

    def describe(self, wanted: set[str]) -> tuple[DecisionTaskNamed, ...]:
        """Return the tasks with the names ``wanted``."""
        return tuple(
            DecisionTaskNamed(
                called=called,
                role=task.role,
                name=task.name,
                made_by=self.of(which)(task.parent) if task.parent is not None else "",
            )
            for called, (task, which) in self._first.items()
            if called in wanted
        )


def common_blocks(baseline: Sequence[Key], other: Sequence[Key]) -> list[tuple[int, int, int]]:
    """Return the parts that two streams have in common, in order: where each begins in both, and its length.

    Some decisions in a row that come once in each stream are anchors; the longest chain of them that goes forward in
    both is kept (as in patience diff), and grows as far as the decisions around are alike.
    """
    seconds = _once(other)
    anchors = [(first, seconds[gram]) for gram, first in _once(baseline).items() if gram in seconds]
    blocks: list[tuple[int, int, int]] = []
    ends = (0, 0)
    for first, second in _longest_chain(sorted(anchors)):
        if first < ends[0] or second < ends[1]:
            continue  # It is part of the last one, or would overlap it.
        back = 0
        while (
            first - back > ends[0]
            and second - back > ends[1]
            and baseline[first - back - 1] == other[second - back - 1]
        ):
            back += 1
        length = 0
        most = min(len(baseline) - first, len(other) - second)
        while length < most and baseline[first + length] == other[second + length]:
            length += 1
        blocks.append((first - back, second - back, length + back))
        ends = (first + length, second + length)
    return blocks


def _once(stream: Sequence[Key]) -> dict[tuple[Key, ...], int]:
    grams = [tuple(stream[place : place + _GRAM]) for place in range(len(stream) - _GRAM + 1)]
    counts = Counter(grams)
    return {gram: place for place, gram in enumerate(grams) if counts[gram] == 1}


def _longest_chain(anchors: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    # Return the longest part of `anchors`, ascending in the first, that ascends in the second, too.
    tails: list[int] = []
    tops: list[int] = []
    before: list[int] = []
    for place, (_, second) in enumerate(anchors):
        at = bisect_left(tails, second)
        before.append(tops[at - 1] if at else -1)
        tails[at : at + 1] = [second]
        tops[at : at + 1] = [place]
    chain_back: list[tuple[int, int]] = []
    place = tops[-1] if tops else -1
    while place >= 0:
        chain_back.append(anchors[place])
        place = before[place]
    return chain_back[::-1]


UNDER: Final = ("under the baseline", "under the configuration")


def divergence(baseline: NamedDecisions, other: NamedDecisions, when: tuple[str, str] = UNDER) -> Divergence:
    """Return where the decisions of ``other`` part from those of the ``baseline``; ``when`` says which is which."""
    places = [decision_places(stream) for stream in (baseline, other)]
    pairing = Pairing(baseline, other)
    alike = pairing.alike_until(*places)
    is_cut = any(stream.left_out and alike == len(at) for stream, at in zip((baseline, other), places, strict=True))
    parts = not is_cut and alike < max(map(len, places))
    names = TaskNames(baseline, other, pairing)
    sides = [
        _Side(stream, at, names.of(which), alike)
        for which, (stream, at) in enumerate(zip((baseline, other), places, strict=True))
    ]
    end_ns = min(side.end_ns for side in sides)
    end_ns = min(max(end_ns, *(side.first_switch_ns for side in sides)), _LONGER * max(1, end_ns))
    begin_ns = max(side.begin_ns for side in sides)
    lanes = [side.lane(begin_ns, end_ns) if parts else side.lane_of_none() for side in sides]
    spread = (
        _spread(pairing.keys(0, places[0][alike:]), pairing.keys(1, places[1][alike:]), sides[0]) if parts else None
    )
    before = tuple(sides[0].point(place) for place in places[0][max(0, alike - _BEFORE) : alike]) if parts else ()
    cpus = len({*baseline.cpus, *other.cpus})
    return Divergence(
        sentences=tuple(_sentences(lanes, alike, spread, when, several=cpus > 1)),
        alike=alike,
        cpus=cpus,
        before=before,
        baseline=lanes[0],
        own=lanes[1],
        spread=spread,
        tasks=names.describe({called for lane in lanes for called in _called(lane)}),
        notes=tuple(_notes((baseline, other), sides, when, parts=parts)),
    )


def decision_point(stream: NamedDecisions, place: int, name: Callable[[int], str]) -> DecisionPoint:
    """Describe a decision of a stream; ``name`` names its tasks."""
    return DecisionPoint(
        kind=KINDS[stream.kinds[place]],
        cpu=stream.cpus[place],
        other_cpu=stream.other_cpus[place],
        time_ns=stream.time_ns(place),
        instructions=stream.at[place],
        running=name(stream.running[place]),
        other=name(stream.others[place]),
        stays=stream.stays[place],
        path=stream.path(place),
    )


@dataclass
class _Side:
    # One of two streams, around the place `alike` of those of its decisions that count (`places`).
    stream: NamedDecisions
    places: list[int]
    name: Callable[[int], str]
    alike: int
    _switches: list[int] = field(init=False)

    def __post_init__(self) -> None:
        near = self.places[max(0, self.alike - _MOST_NEAR) : self.alike + _MOST_NEAR]
        self._switches = [place for place in near if self.stream.kinds[place] == _SWITCH]

    @property
    def zero_ns(self) -> int:
        # Return when the last decision in common was taken.
        return self.stream.time_ns(self.places[self.alike - 1]) if self.alike else 0

    def _since(self, place: int) -> int:
        return self.stream.time_ns(place) - self.zero_ns

    @property
    def _parting(self) -> int:
        return self.places[self.alike] if self.alike < len(self.places) else len(self.stream)

    @property
    def _later(self) -> list[int]:
        return [place for place in self._switches if place >= self._parting]

    @property
    def begin_ns(self) -> int:
        earlier = self._switches[: bisect_left(self._switches, self._parting)]
        return self._since(earlier[-_SWITCHES_BEFORE:][0]) if earlier else -self.zero_ns

    @property
    def end_ns(self) -> int:
        later = self._later[:_SWITCHES_AFTER]
        return self._since(later[-1]) if later else self.stream.whole_ns - self.zero_ns

    @property
    def first_switch_ns(self) -> int:
        later = self._later[:1]
        return self._since(later[0]) if later else 0

    def point(self, place: int) -> DecisionPoint:
        return decision_point(self.stream, place, self.name)

    def lane_of_none(self) -> DecisionLane:
        return DecisionLane(decisions=len(self.places), following=(), runs=(), marks=())

    def lane(self, begin_ns: int, end_ns: int) -> DecisionLane:
        near = self.places[max(0, self.alike - _MOST_NEAR) : self.alike + _MOST_NEAR]
        visible = [place for place in near if begin_ns <= self._since(place) <= end_ns]
        stream = self.stream
        return DecisionLane(
            decisions=len(self.places),
            following=tuple(map(self.point, self.places[self.alike : self.alike + _FOLLOWING])),
            runs=tuple(self._runs(begin_ns, min(end_ns, self.stream.whole_ns - self.zero_ns))),
            marks=tuple(
                DecisionMark(
                    cpu=stream.cpus[place],
                    kind=KINDS[stream.kinds[place]],
                    task=self.name(stream.others[place]),
                    at_ns=self._since(place),
                )
                for place in visible
                if stream.kinds[place] != _SWITCH
            ),
        )

    def _runs(self, begin_ns: int, end_ns: int) -> Iterator[DecisionRun]:
        stream = self.stream
        for cpu in sorted(set(stream.cpus)):
            switches = [place for place in self._switches if stream.cpus[place] == cpu]
            since, task = begin_ns, self._runs_on(cpu, switches)
            for place in switches:
                at_ns = self._since(place)
                if since < min(at_ns, end_ns) and at_ns > begin_ns:
                    yield DecisionRun(cpu=cpu, task=self.name(task), begin_ns=since, end_ns=min(at_ns, end_ns))
                since, task = max(at_ns, begin_ns), stream.others[place]
            if since < end_ns:
                yield DecisionRun(cpu=cpu, task=self.name(task), begin_ns=since, end_ns=end_ns)

    def _runs_on(self, cpu: int, switches: Sequence[int]) -> int:
        # Return who runs on a CPU before the first of its `switches`; without any, all the time around the place.
        stream = self.stream
        if switches:
            return stream.running[switches[0]]
        of_cpu = [place for place, other in enumerate(stream.cpus) if other == cpu]
        last = of_cpu[max(0, bisect_left(of_cpu, self._parting) - 1)]
        came = stream.kinds[last] == _SWITCH and last < self._parting
        return stream.others[last] if came else stream.running[last]


def _called(lane: DecisionLane) -> Iterator[str]:
    yield from (run.task for run in lane.runs)
    for point in lane.following:
        yield from (point.running, point.other)


def _spread(baseline: list[Key], other: list[Key], side: _Side) -> DecisionSpread:
    # Return how decisions differ, both from where they part on; `side` is the baseline's.
    blocks = common_blocks(baseline, other)
    matched = [False] * len(baseline)
    for first, _, length in blocks:
        matched[first : first + length] = [True] * length
    again = next((first for first, _, length in blocks if length >= _AGAIN), None)
    last = blocks[-1] if blocks else (0, 0, 0)
    ends = (last[0] + last[2], last[1] + last[2]) == (len(baseline), len(other))
    soon = min(_SOON, len(baseline))
    again_ns = None
    if again is not None:
        places = side.places
        again_ns = side.stream.time_ns(places[side.alike + again]) - side.stream.time_ns(places[side.alike])
    return DecisionSpread(
        after=len(baseline),
        differ=matched.count(False),
        soon=soon,
        differ_soon=matched[:soon].count(False),
        alike_again=again,
        alike_again_ns=again_ns,
        for_good=ends and last[2] >= _AGAIN,
    )


def _sentences(
    lanes: Sequence[DecisionLane],
    alike: int,
    spread: DecisionSpread | None,
    when: tuple[str, str],
    *,
    several: bool,
) -> Iterator[str]:
    firsts = [lane.first for lane in lanes]
    parting = next((first for first in firsts if first is not None), None)
    if parting is None:
        yield f"They never part: all {number(alike)} decisions of the scheduler are alike."
        return
    after = amount(parting.time_ns, "ns")
    apart = len({first.cpu for first in firsts if first is not None}) > 1
    where = "" if apart else f", on CPU {parting.cpu}, while {_task(parting.running)} runs"
    yield f"They part {after} after the workload's start{where}."
    for who, first in zip(when, firsts, strict=True):
        on_cpu = f", on CPU {first.cpu}," if first and apart else ""
        yield f"{_capital(who)}{on_cpu} {in_words(first) if first else 'nothing more is decided'}."
    if apart and _comes_later(firsts[0], lanes[1]) and _comes_later(firsts[1], lanes[0]):
        yield "Both decide both, in another order."
    for who, first in zip(when, firsts, strict=True):
        if first is not None and first.path:
            # The function of the switch itself is in every path.
            path = [name for name in first.path if name != "__switch_to_asm"]
            inner = path if len(path) <= _LONGEST_PATH else ["…", *path[-_LONGEST_PATH:]]
            yield f"Path {who}: {' → '.join(inner)}."
    yield f"Before, {number(alike)} decisions are alike (up to instruction {parting.instructions:,} {when[0]})."
    for who, lane in zip(when, lanes, strict=True):
        later = next((point for point in lane.following[1:] if point.kind == "switch"), None)
        if later is not None and lane.first is not None:
            on_cpu = f" on CPU {later.cpu}," if several else ""
            after = amount(later.time_ns - lane.first.time_ns, "ns")
            yield f"Then, {who},{on_cpu} {in_words(later)} {after} later."
    if spread is not None and spread.after:
        yield from _spread_words(spread, when[0])


def _comes_later(first: DecisionPoint | None, lane: DecisionLane) -> bool:
    return first is not None and any(
        (first.kind, first.cpu, first.running, first.other) == (later.kind, later.cpu, later.running, later.other)
        for later in lane.following[1:]
    )


def _spread_words(spread: DecisionSpread, under: str) -> Iterator[str]:
    share = percent(round(spread.differ / spread.after, 2))
    yield (
        f"Of the next {number(spread.soon)} decisions {under} {number(spread.differ_soon)} have no "
        f"counterpart; of all {number(spread.after)} after it, {share}."
    )
    if spread.alike_again is None:
        yield f"They never come together again, not for {_AGAIN} decisions in a row."
    else:
        after = f"{number(spread.alike_again)} decisions ({amount(spread.alike_again_ns or 0, 'ns')})"
        rest = "At the end they decide alike." if spread.for_good else "At the end they still differ."
        yield f"After {after} they decide alike again, {_AGAIN} times in a row or more. {rest}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _task(called: str) -> str:
    return "nobody" if called == IDLE else f"the {called}" if called in ROLES else called


def in_words(point: DecisionPoint) -> str:
    """Describe a decision as a sentence without its end."""
    running, other = _task(point.running), _task(point.other)
    if point.kind == "timer":
        return f"the timer interrupts {running}"
    at_timer = " at a timer interrupt" if _TIMER_FUNCTION in point.path else ""
    if point.kind == "switch":
        return _switch_in_words(point, running, other)
    if point.kind == "wakeup":
        if point.path and point.path[0].startswith(_INTERRUPTS):
            return f"{'the timer' if at_timer else 'an interrupt'} wakes {other}"
        if point.running == IDLE:
            return f"the idle CPU wakes {other}"
        return f"{running} wakes {other if point.other != point.running else 'itself'}"
    if point.kind == "new":
        return f"{running} starts {other}"
    there = f" on CPU {point.other_cpu}" if point.other_cpu is not None else ""
    if point.other == IDLE:
        return f"the idle CPU{there.removeprefix(' on CPU')} has to take a task{at_timer}"
    return f"the timer interrupt preempts {other}{there}" if at_timer else f"{other}{there} is preempted"


def _switch_in_words(point: DecisionPoint, running: str, other: str) -> str:
    if point.other == IDLE:
        return f"{running} waits, and the CPU is idle"
    moves = point.other_cpu is not None
    comes = f"{other}, which continues on CPU {point.cpu}" if moves else other
    if point.running == IDLE:
        return f"the idle CPU takes {comes}"
    if point.stays:
        return f"{running} makes way for {comes}"
    return f"{running} waits, and {other} {f'continues on CPU {point.cpu}' if moves else 'comes'}"


def _notes(
    streams: Sequence[NamedDecisions], sides: Sequence[_Side], when: tuple[str, str], *, parts: bool
) -> Iterator[str]:
    if any(stream.left_out for stream in streams):
        compared = min(len(stream) for stream in streams)
        yield f"Only the first {number(compared)} decisions were kept, and compared."
    if not all(stream.has_clock for stream in streams):
        yield "This QEMU does not tell how long a guest is idle: times are those of its instructions alone."
    if parts and all(side.alike for side in sides):
        ahead = [side.stream.at[side.places[side.alike - 1]] for side in sides]
        if ahead[0] != ahead[1]:
            more = "more" if ahead[1] > ahead[0] else "fewer"
            yield (
                f"Up to the last decision in common {number(abs(ahead[1] - ahead[0]))} {more} instructions are carried "
                f"out {when[1]} than {when[0]}."
            )

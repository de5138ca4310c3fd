"""Where two trials with one seed part: the first decision of the scheduler that differs, and how that spreads. Pure.

What counts is the decision: its kind, its CPU and its tasks. When it was taken does not: kernels and settings differ
in their instructions long before they differ in what they decide. So the timer's interrupts, which come by the clock,
are no decisions here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ajuste.analysis.pairing import IDLE, Key, Pairing, TaskNames, common_blocks, decision_places
from ajuste.model.cost import ROLES
from ajuste.model.decision import (
    KINDS,
    DecisionLane,
    DecisionMark,
    DecisionPoint,
    DecisionRun,
    DecisionSpread,
    Divergence,
    NamedDecisions,
)
from ajuste.model.wording import amount, number, percent

_SWITCH: Final = KINDS.index("switch")

_FOLLOWING: Final = 6
# Decisions that are listed after two streams have parted, and before.
_BEFORE: Final = 4
_SWITCHES_BEFORE: Final = 5
_SWITCHES_AFTER: Final = 7
# Switches that are drawn before and after; a longer run is drawn for that many times that time.
_LONGER: Final = 8
_MOST_NEAR: Final = 400

_SOON: Final = 100
# After that many alike in a row, two streams have come together.
_AGAIN: Final = 16

_LONGEST_PATH: Final = 8
_TIMER_FUNCTION: Final = "sysvec_apic_timer_interrupt"
_INTERRUPTS: Final = ("asm_sysvec_", "asm_common_interrupt", "irq_entries_start", "common_interrupt")


def divergence(baseline: NamedDecisions, other: NamedDecisions) -> Divergence:
    """Return where the decisions of ``other`` part from those of the ``baseline``."""
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
        sentences=tuple(_sentences(lanes, alike, spread, several=cpus > 1)),
        alike=alike,
        cpus=cpus,
        before=before,
        baseline=lanes[0],
        own=lanes[1],
        spread=spread,
        tasks=names.describe({called for lane in lanes for called in _called(lane)}),
        notes=tuple(_notes((baseline, other), sides, parts)),
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
    lanes: Sequence[DecisionLane], alike: int, spread: DecisionSpread | None, *, several: bool
) -> Iterator[str]:
    firsts = [lane.first for lane in lanes]
    parting = next((first for first in firsts if first is not None), None)
    if parting is None:
        yield f"They never part: all {number(alike)} decisions of the scheduler are alike."
        return
    when = amount(parting.time_ns, "ns")
    apart = len({first.cpu for first in firsts if first is not None}) > 1
    where = "" if apart else f", on CPU {parting.cpu}, while {_task(parting.running)} runs"
    yield f"They part {when} after the workload's start{where}."
    whom = ("the baseline", "the configuration")
    for who, first in zip(whom, firsts, strict=True):
        on_cpu = f", on CPU {first.cpu}," if first and apart else ""
        yield f"Under {who}{on_cpu} {in_words(first) if first else 'nothing more is decided'}."
    if apart and _comes_later(firsts[0], lanes[1]) and _comes_later(firsts[1], lanes[0]):
        yield "Both decide both, in another order."
    for who, first in zip(whom, firsts, strict=True):
        if first is not None and first.path:
            yield f"Path under {who}: {' → '.join(_inner_path(first.path))}."
    yield f"Before, {number(alike)} decisions are alike (up to instruction {parting.instructions:,} of the baseline)."
    for who, lane in zip(whom, lanes, strict=True):
        later = next((point for point in lane.following[1:] if point.kind == "switch"), None)
        if later is not None and lane.first is not None:
            on_cpu = f" on CPU {later.cpu}," if several else ""
            after = amount(later.time_ns - lane.first.time_ns, "ns")
            yield f"Then, under {who},{on_cpu} {in_words(later)} {after} later."
    if spread is not None and spread.after:
        yield from _spread_words(spread)


def _comes_later(first: DecisionPoint | None, lane: DecisionLane) -> bool:
    return first is not None and any(
        (first.kind, first.cpu, first.running, first.other) == (later.kind, later.cpu, later.running, later.other)
        for later in lane.following[1:]
    )


def _spread_words(spread: DecisionSpread) -> Iterator[str]:
    share = percent(round(spread.differ / spread.after, 2))
    yield (
        f"Of the next {number(spread.soon)} decisions of the baseline {number(spread.differ_soon)} have no "
        f"counterpart; of all {number(spread.after)} after it, {share}."
    )
    if spread.alike_again is None:
        yield f"They never come together again, not for {_AGAIN} decisions in a row."
    else:
        after = f"{number(spread.alike_again)} decisions ({amount(spread.alike_again_ns or 0, 'ns')})"
        rest = "At the end they decide alike." if spread.for_good else "At the end they still differ."
        yield f"After {after} they decide alike again, {_AGAIN} times in a row or more. {rest}"


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


def _inner_path(path: Sequence[str]) -> list[str]:
    # Return the innermost functions; that of the switch itself is in every path.
    named = [name for name in path if name != "__switch_to_asm"]
    return named if len(named) <= _LONGEST_PATH else ["…", *named[-_LONGEST_PATH:]]


def _notes(streams: Sequence[NamedDecisions], sides: Sequence[_Side], parts: bool) -> Iterator[str]:
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
                f"Up to the last decision in common the configuration carries out {number(abs(ahead[1] - ahead[0]))} "
                f"{more} instructions than the baseline."
            )

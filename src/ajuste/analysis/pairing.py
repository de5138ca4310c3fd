"""Which tasks and decisions of two trials are the same, in the streams of their schedulers. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Final

from ajuste.model.decision import KINDS, DecisionTask, DecisionTaskNamed, NamedDecisions

IDLE: Final = "idle"
_SWITCH: Final = KINDS.index("switch")
_TIMER: Final = KINDS.index("timer")
# That many decisions in a row, which come once in each stream, are taken for the same.
_GRAM: Final = 4

Key = tuple[int, int, int, int]
"""A decision: its kind, its CPU, who runs and who else it is about."""


def decision_places(stream: NamedDecisions) -> list[int]:
    """Return the places of all decisions but the timer's, which come by the clock."""
    return [place for place, kind in enumerate(stream.kinds) if kind != _TIMER]


class Pairing:
    """Which task of one stream is which of the other.

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
                    self._tasks.setdefault(pairing.identity(which, task), (tasks[task], which))
                    plain.setdefault(pairing.identity(which, task), _plain_name(tasks[task]))
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


def _plain_name(task: DecisionTask) -> str:
    if task.role == "kernel":
        return task.name or "kernel task"
    return task.role


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

"""Which tasks and decisions of two trials are the same: in streams of what their schedulers decided. Pure."""

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
_GRAM: Final = 4
"""So many decisions in a row, which come once in each stream, are taken for the same."""

Key = tuple[int, int, int, int]
"""A decision: its kind, its CPU, who runs and who else it is about."""


def decided(one: NamedDecisions) -> list[int]:
    """The places of all decisions but the timer's, which come by the clock."""
    return [place for place, kind in enumerate(one.kinds) if kind != _TIMER]


class Pairing:
    """Which task of one stream is which of the other: by who made it and when, or by its role and name, or by its CPU
    if it is idle. Tasks that stand at the same place of decisions that are alike are the same.
    """

    def __init__(self, baseline: NamedDecisions, own: NamedDecisions) -> None:
        self._streams = (baseline, own)
        self._tasks = tuple({task.number: task for task in one.tasks} for one in self._streams)
        self._idle = tuple(map(_cpus_of_idle, self._streams))
        self._pairs: dict[int, int] = {}
        self._taken: dict[int, int] = {}
        self._ids: tuple[dict[int, int], ...] = ()

    def alike_until(self, baseline: Sequence[int], own: Sequence[int]) -> int:
        """How many decisions at those places are alike from the first on."""
        count = 0
        for one, other in zip(baseline, own, strict=False):
            if not self._is_alike(one, other):
                break
            count += 1
        self._ids = self._identified()
        return count

    def _is_alike(self, one: int, other: int) -> bool:
        first, second = self._streams
        return (
            (first.kinds[one], first.cpus[one]) == (second.kinds[other], second.cpus[other])
            and self._is_same(first.running[one], second.running[other])
            and self._is_same(first.others[one], second.others[other])
        )

    def _is_same(self, one: int, other: int) -> bool:
        """Pairs them if they fit and are not paired yet, and those that made them."""
        fitting: list[tuple[int, int]] = []
        while one not in self._pairs or other not in self._taken:
            task, counterpart = self._tasks[0][one], self._tasks[1][other]
            if one in self._pairs or other in self._taken or not _fits(task, counterpart):
                return False
            if len({idle[task] for idle, task in zip(self._idle, (one, other), strict=True) if task in idle}) > 1:
                return False
            fitting.append((one, other))
            if task.parent is None or counterpart.parent is None:
                break
            one, other = task.parent, counterpart.parent
        else:
            if self._pairs[one] != other:
                return False
        for pair in fitting:
            self._pairs[pair[0]] = pair[1]
            self._taken[pair[1]] = pair[0]
        return True

    def _identified(self) -> tuple[dict[int, int], ...]:
        """A number for each task of both streams, which is the same for one and its counterpart."""
        ids: dict[tuple[object, ...], int] = {}
        found: tuple[dict[int, int], dict[int, int]] = ({}, {})
        for which, tasks in enumerate(self._tasks):
            seen: Counter[tuple[str, str]] = Counter()
            for task in sorted(tasks.values(), key=lambda task: task.number):
                known = self._taken.get(task.number) if which else task.number
                if known in self._pairs:
                    key: tuple[object, ...] = ("pair", known)
                elif task.number in self._idle[which]:
                    key = (task.role, self._idle[which][task.number])
                elif task.parent is not None:
                    key = (found[which][task.parent], task.birth)
                else:
                    key = (task.role, task.name, seen[task.role, task.name])
                    seen[task.role, task.name] += 1
                found[which][task.number] = ids.setdefault(key, len(ids))
        return found

    def keys(self, which: int, places: Iterable[int]) -> list[Key]:
        """The decisions at ``places`` of a stream, so that those that are alike in both are equal."""
        one, ids = self._streams[which], self._ids[which]
        return [(one.kinds[at], one.cpus[at], ids[one.running[at]], ids[one.others[at]]) for at in places]

    def identity(self, which: int, task: int) -> int:
        return self._ids[which][task]


def _cpus_of_idle(one: NamedDecisions) -> dict[int, int]:
    """The CPU of each idle task that has one."""
    idle = {task.number for task in one.tasks if task.role == IDLE}
    found: dict[int, int] = {}
    for kind, cpu, running, other in zip(one.kinds, one.cpus, one.running, one.others, strict=True):
        if running in idle:
            found[running] = cpu
        if kind == _SWITCH and other in idle:
            found[other] = cpu
    return found


def _fits(one: DecisionTask, other: DecisionTask) -> bool:
    if (one.role, one.parent is None) != (other.role, other.parent is None):
        return False
    if one.parent is not None:
        return one.birth == other.birth
    return one.role != "kernel" or not one.name or not other.name or one.name == other.name


class TaskNames:
    """How the tasks of both streams are called: by what they are for, numbered as they were first seen in decisions.
    Each CPU has an idle one, and they share a name.
    """

    def __init__(self, baseline: NamedDecisions, own: NamedDecisions, pairing: Pairing) -> None:
        self._pairing = pairing
        self._streams = (baseline, own)
        plain: dict[int, str] = {}
        self._tasks: dict[int, tuple[DecisionTask, int]] = {}
        for which, one in enumerate(self._streams):
            tasks = {task.number: task for task in one.tasks}
            in_order = chain.from_iterable(zip(one.running, one.others, strict=True))
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
        """Every task of both, by how it is called."""
        return {called: task for called, (task, _) in self._first.items()}

    def of(self, which: int) -> Callable[[int], str]:
        return lambda task: "" if task < 0 else self._called[self._pairing.identity(which, task)]

    def told(self, wanted: set[str]) -> tuple[DecisionTaskNamed, ...]:
        """The tasks that are called so."""
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


def common_blocks(one: Sequence[Key], other: Sequence[Key]) -> list[tuple[int, int, int]]:
    """What two streams have in common, in order: where each part begins in both, and how long it is.

    Some decisions in a row that come once in each stream are anchors; the longest chain of them that goes forward in
    both is kept (as in patience diff), and grows as far as the decisions around are alike.
    """
    seconds = _once(other)
    anchors = [(first, seconds[gram]) for gram, first in _once(one).items() if gram in seconds]
    blocks: list[tuple[int, int, int]] = []
    ends = (0, 0)
    for first, second in _longest_chain(sorted(anchors)):
        if first < ends[0] or second < ends[1]:
            continue  # It is part of the last one, or would overlap it.
        back = 0
        while first - back > ends[0] and second - back > ends[1] and one[first - back - 1] == other[second - back - 1]:
            back += 1
        length = 0
        most = min(len(one) - first, len(other) - second)
        while length < most and one[first + length] == other[second + length]:
            length += 1
        blocks.append((first - back, second - back, length + back))
        ends = (first + length, second + length)
    return blocks


def _once(stream: Sequence[Key]) -> dict[tuple[Key, ...], int]:
    """The decisions in a row that come once, and where."""
    grams = [tuple(stream[place : place + _GRAM]) for place in range(len(stream) - _GRAM + 1)]
    counts = Counter(grams)
    return {gram: place for place, gram in enumerate(grams) if counts[gram] == 1}


def _longest_chain(anchors: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of ``anchors``, ascending in the first, that ascends in the second, too."""
    tails: list[int] = []
    tops: list[int] = []
    before: list[int] = []
    for place, (_, second) in enumerate(anchors):
        at = bisect_left(tails, second)
        before.append(tops[at - 1] if at else -1)
        tails[at : at + 1] = [second]
        tops[at : at + 1] = [place]
    found: list[tuple[int, int]] = []
    place = tops[-1] if tops else -1
    while place >= 0:
        found.append(anchors[place])
        place = before[place]
    return found[::-1]

"""The history of a run: the trials that were kept so far, by block and position."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from ajuste.model.trial import Slot, Trial


class TrialHistory:
    """The trials of a run as they come in; ``machines`` are those of several that blocks belong to."""

    def __init__(self, trials: Iterable[Trial] = (), machines: Mapping[int, str] = MappingProxyType({})) -> None:
        self.machines = dict(machines)
        self._kept: dict[int, dict[int, list[Trial]]] = {}
        self._spans = Spans()
        for one in trials:
            self.add(one)

    def add(self, trial: Trial, machine: str = "") -> None:
        """Keep a trial, attempt after attempt, of one of several machines. What its programs printed is kept of the
        first block only.
        """
        if machine:
            self.machines[trial.slot.block] = machine
        kept = trial if trial.slot.block == 0 else trial.model_copy(update={"events": "", "console": ""})
        self._kept.setdefault(trial.slot.block, {}).setdefault(trial.slot.position, []).append(kept)
        self._spans.add(trial)

    def trials(self, number: int) -> list[Trial]:
        """All trials up to block ``number``: a run that was interrupted may have kept some of the next one."""
        return [
            one
            for block, slots in sorted(self._kept.items())
            if block <= number
            for _, own in sorted(slots.items())
            for one in own
        ]

    def slots(self, number: int) -> tuple[Slot, ...]:
        """What of a block was tried."""
        return tuple(own[0].slot for _, own in sorted(self._kept.get(number, {}).items()))

    def attempts(self, slot: Slot) -> Sequence[Trial]:
        """What was tried in that slot."""
        return self._kept.get(slot.block, {}).get(slot.position, [])

    def seconds_of(self, number: int) -> float:
        """How long the trials of a block took; 0 if none was tried."""
        return sum(own[-1].host_seconds for own in self._kept.get(number, {}).values())

    @property
    def minutes(self) -> float:
        """For how many minutes of the host's time at least one trial was running."""
        return self._spans.minutes


class Spans:
    """The host's time in which trials were running. What overlaps counts once."""

    def __init__(self) -> None:
        self._begins: list[float] = []
        self._ends: list[float] = []
        self._seconds = 0.0

    @property
    def minutes(self) -> float:
        return self._seconds / 60

    def add(self, trial: Trial) -> None:
        """Count the time of ``trial``, which may have run before, beside or after all others."""
        begin = datetime.fromisoformat(trial.started).timestamp()
        end = begin + trial.host_seconds
        first = bisect_left(self._ends, begin)
        last = bisect_right(self._begins, end)
        joined = sum(self._ends[n] - self._begins[n] for n in range(first, last))
        if first < last:
            begin, end = min(begin, self._begins[first]), max(end, self._ends[last - 1])
        self._begins[first:last] = [begin]
        self._ends[first:last] = [end]
        self._seconds += end - begin - joined

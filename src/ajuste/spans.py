"""Spans of time: for how long at least one of several things went on."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import datetime

from ajuste.model.trial import Trial


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

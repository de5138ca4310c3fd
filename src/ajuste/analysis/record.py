"""A record: all that was measured in a run, of which the analysis takes what it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from ajuste.analysis.digest import digest
from ajuste.model.measurements import Measurements, measurements
from ajuste.model.trial import Trial


class Record(Protocol):
    """``measurements`` are all figures; what programs printed need not be in memory for all trials at once."""

    @property
    def measurements(self) -> Measurements: ...

    @property
    def digest(self) -> str:
        """See ``analysis.digest``."""
        ...

    def whole(self, rows: Sequence[int]) -> Sequence[Trial]:
        """The trials of these rows of ``measurements`` with all that was seen of them."""
        ...


@dataclass(frozen=True)
class ListedTrials:
    """A record of trials that are all in memory, in the order of the design."""

    trials: tuple[Trial, ...]

    @cached_property
    def measurements(self) -> Measurements:
        return measurements(self.trials)

    @property
    def digest(self) -> str:
        return digest(self.trials)

    def whole(self, rows: Sequence[int]) -> Sequence[Trial]:
        return [self.trials[row] for row in rows]


def record_of(trials: Iterable[Trial]) -> ListedTrials:
    """A record of ``trials``, in whatever order they come."""
    return ListedTrials(tuple(sorted(trials, key=lambda t: (t.slot.block, t.slot.position, t.attempt))))

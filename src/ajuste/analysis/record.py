"""A record: all that was measured in a run, of which the analysis takes what it needs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

from ajuste.model.measurements import Measured, Measurements, measurements
from ajuste.model.trial import Trial


class Record(Protocol):
    """``measurements`` are all figures; what programs printed need not be in memory for all trials at once."""

    @property
    def measurements(self) -> Measurements: ...

    @property
    def digest(self) -> str:
        """See ``analysis.record``."""
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


# The digest: one number for all that was measured, equal if and only if the measurements are.


_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)
_CHUNK: Final = 1 << 20


def digest(trials: Iterable[Trial]) -> str:
    """SHA-256 (hexadecimal) over the canonical JSON of all trials in the order of the design.

    Covers configuration, seed, block, position, attempt, values read back, the agent's event lines, metrics and
    status; no time or text of the host.
    """
    in_order = sorted(trials, key=lambda t: (t.slot.block, t.slot.position, t.attempt))
    return digest_in_order(map(_measured, in_order))


def digest_in_order(measured: Iterable[Measured]) -> str:
    """As ``digest``, of trials that come in the order of the design one after the other: none is kept in memory."""
    found = hashlib.sha256(b"[")
    separator = b""
    parts = bytearray()
    for one in measured:
        parts += separator
        parts += _CANONICAL.encode(one).encode("ascii")
        separator = b","
        if len(parts) > _CHUNK:
            found.update(parts)
            parts.clear()
    found.update(parts)
    found.update(b"]")
    return found.hexdigest()


def _measured(trial: Trial) -> Measured:
    return {
        "slot": dict(trial.slot),
        "attempt": trial.attempt,
        "status": trial.status,
        "written": [write.model_dump(exclude={"at_ns"}) for write in trial.written],
        "events": trial.events,
        "metrics": trial.metrics,
        "not_supported": trial.not_supported,
    }

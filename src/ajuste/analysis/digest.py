"""Digest of a run: equal if and only if what was measured is equal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Final

from ajuste.model.measurements import TrialMeasurements
from ajuste.model.trial import Trial

_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)
_CHUNK: Final = 1 << 20


def in_order(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    """Return ``trials`` in the order of the design."""
    return tuple(sorted(trials, key=lambda t: (t.slot.block, t.slot.position, t.attempt)))


def digest(trials: Iterable[Trial]) -> str:
    """Return SHA-256 (hexadecimal) over the canonical JSON of all trials in the order of the design.

    Equal if and only if the measurements are: it covers configuration, seed, block, position, attempt, values read
    back, the agent's event lines, metrics and status; no time or text of the host.
    """
    return digest_in_order(map(_measured, in_order(trials)))


def digest_in_order(measured: Iterable[TrialMeasurements]) -> str:
    """Return ``digest`` of trials that come in the order of the design; none is kept in memory."""
    hasher = hashlib.sha256(b"[")
    separator = b""
    parts = bytearray()
    for trial in measured:
        parts += separator
        parts += _CANONICAL.encode(trial).encode("ascii")
        separator = b","
        if len(parts) > _CHUNK:
            hasher.update(parts)
            parts.clear()
    hasher.update(parts)
    hasher.update(b"]")
    return hasher.hexdigest()


def _measured(trial: Trial) -> TrialMeasurements:
    return {
        "slot": dict(trial.slot),
        "attempt": trial.attempt,
        "status": trial.status,
        "written": [write.model_dump(exclude={"at_ns"}) for write in trial.written],
        "events": trial.events,
        "metrics": trial.metrics,
        "not_supported": trial.not_supported,
    }

"""The digest: one number for all that was measured, equal if and only if the measurements are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Final

from ajuste.model.trial import Trial

_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)
_CHUNK: Final = 1 << 20


def digest(trials: Iterable[Trial]) -> str:
    """SHA-256 (hexadecimal) over the canonical JSON of all trials in the order of the design.

    Covers configuration, seed, block, position, attempt, values read back, the agent's event lines, metrics and
    status; no time or text of the host.
    """
    return digest_in_order(sorted(trials, key=lambda t: (t.slot.block, t.slot.position, t.attempt)))


def digest_in_order(trials: Iterable[Trial]) -> str:
    """As ``digest``, of trials that come in the order of the design one after the other: none is kept in memory."""
    found = hashlib.sha256(b"[")
    separator = b""
    parts = bytearray()
    for trial in trials:
        parts += separator
        parts += _CANONICAL.encode(_measured(trial)).encode("ascii")
        separator = b","
        if len(parts) > _CHUNK:
            found.update(parts)
            parts.clear()
    found.update(parts)
    found.update(b"]")
    return found.hexdigest()


def _measured(trial: Trial) -> dict[str, Any]:
    return {
        "slot": dict(trial.slot),
        "attempt": trial.attempt,
        "status": trial.status,
        "written": [{name: value for name, value in write if name != "at_ns"} for write in trial.written],
        "events": trial.events,
        "metrics": trial.metrics,
        "not_supported": trial.not_supported,
    }

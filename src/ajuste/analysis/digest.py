"""The digest: one number for all that was measured, equal if and only if the measurements are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from ajuste.model.trial import Trial


def digest(trials: Sequence[Trial]) -> str:
    """SHA-256 (hexadecimal) over the canonical JSON of all trials in the order of the design.

    Covers configuration, seed, block, position, attempt, values read back, the agent's event lines, metrics and
    status; no time or text of the host.
    """
    in_order = sorted(trials, key=lambda t: (t.slot.block, t.slot.position, t.attempt))
    text = json.dumps([_measured(t) for t in in_order], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _measured(trial: Trial) -> dict[str, Any]:
    return {
        "slot": trial.slot.model_dump(mode="json"),
        "attempt": trial.attempt,
        "status": trial.status,
        "written": [write.model_dump(mode="json", exclude={"at_ns"}) for write in trial.written],
        "events": trial.events,
        "metrics": trial.metrics,
        "not_supported": trial.not_supported,
    }

"""Time that a broken guard stays: from the breach to the restored value, also with Ajuste's Python killed or stopped.

A service in a network of its own shows a figure that breaks its guard at a moment that it notes, and looks at the
setting all the time. With a third of the breaches Ajuste is killed (SIGKILL), with a third it is stopped (SIGSTOP), so
that nobody checks the guards any more. The three kinds go on at once, each in a network of its own.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from ajuste.model.error import RequestError
from benchmarks.comparison import Comparison
from benchmarks.live.redis import printed_alone

ROUNDS: Final = 34
"""Breaches of each kind."""
MOST_MS: Final = 2000.0
SHARE: Final = 0.99
KINDS: Final = ("guard", "killed", "stopped")


def measure() -> Iterable[Comparison]:
    """Breaches of each kind. Needs root."""
    times_ms = breaches(ROUNDS)
    every = sorted(value for values in times_ms.values() for value in values)
    within = sum(value < MOST_MS for value in every)
    yield Comparison(
        name="live-guards",
        what=f"from a breach to the restored value, {within} of {len(every)} under {MOST_MS / 1000:g} s",
        unit="ms",
        figures=times_ms,
        goal=f"under {MOST_MS / 1000:g} s in {100 * SHARE:g} of 100",
        reached=within >= SHARE * len(every),
    )


def breaches(rounds: int) -> dict[str, list[float]]:
    """Milliseconds by kind; the kinds are measured at once."""
    if os.geteuid() != 0:
        raise RequestError("a network of its own needs root")
    Path("/var/lib/ajuste").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ajuste-guards-") as directory, ThreadPoolExecutor(len(KINDS)) as pool:
        times_ms = pool.map(lambda kind: _breaches(kind, rounds, Path(directory) / kind), KINDS)
        return dict(zip(KINDS, times_ms, strict=True))


def _breaches(kind: str, rounds: int, directory: Path) -> list[float]:
    times_ms: list[float] = json.loads(
        printed_alone(directory, "benchmarks.live.breach", str(directory), kind, str(rounds))
    )
    return times_ms

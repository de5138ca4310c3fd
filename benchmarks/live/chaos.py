"""Live experiments with faults: an endpoint that is silent, cut, slow or lies; helpers that are frozen or killed.

Each fault begins at a random moment of a slice with the new value, in a network of its own. With a fault of a process,
the service breaks its guard at the same moment. An endpoint that cannot be checked may be so for the stated silence.
``python -m benchmarks.live.chaos 40`` runs as many experiments; the benchmark ``live-chaos`` runs 200.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from ajuste.model.error import RequestError
from ajuste_live.guards import SILENT_SECONDS
from benchmarks.comparison import Comparison, show
from benchmarks.live.fault import ENDPOINT, KINDS, OLD
from benchmarks.live.redis import printed_alone

EXPERIMENTS: Final = 200
AT_ONCE: Final = 3
MOST_MS: Final = 2000.0
SHARE: Final = 0.99


def measure(experiments: int = EXPERIMENTS) -> Iterable[Comparison]:
    """Run so many experiments, of each kind equally many. Needs root."""
    results = outcomes(experiments)
    within = sum(outcome["ms"] <= MOST_MS + _silence_ms(outcome["kind"]) for outcome in results)
    wrong = sum(outcome["wrong"] > 0 for outcome in results)
    left = sum(outcome["left"] or outcome["after"] != OLD for outcome in results)
    yield Comparison(
        name="live-chaos",
        what=f"values back within {MOST_MS / 1000:g} s of the breach, or of the stated silence of "
        f"{SILENT_SECONDS:g} s, in {within} of {len(results)}; wrong and unflagged: {wrong}; left changed: {left}",
        unit="ms",
        figures={
            kind: ms for kind in KINDS if (ms := [outcome["ms"] for outcome in results if outcome["kind"] == kind])
        },
        goal=f"within it in {100 * SHARE:g} of 100, none wrong and unflagged, nothing left changed",
        reached=within >= SHARE * len(results) and not wrong and not left,
    )


def _silence_ms(kind: str) -> float:
    return 1000 * SILENT_SECONDS if kind in ENDPOINT else 0.0


def outcomes(experiments: int) -> list[dict[str, Any]]:
    """Return what came of each, by ``benchmarks.live.fault``."""
    if os.geteuid() != 0:
        raise RequestError("a network of its own needs root")
    Path("/var/lib/ajuste").mkdir(exist_ok=True)
    kinds = list(islice(cycle(KINDS), experiments))
    shares = [kinds[first::AT_ONCE] for first in range(AT_ONCE)]
    with tempfile.TemporaryDirectory(prefix="ajuste-chaos-") as directory, ThreadPoolExecutor(AT_ONCE) as pool:
        places = [Path(directory) / str(number) for number in range(AT_ONCE)]
        return [outcome for share_outcomes in pool.map(_outcomes, shares, places) for outcome in share_outcomes]


def _outcomes(kinds: list[str], directory: Path) -> list[dict[str, Any]]:
    if not kinds:
        return []
    printed = printed_alone(directory, "benchmarks.live.fault", str(directory), ",".join(kinds))
    return [json.loads(line) for line in printed.splitlines()]


if __name__ == "__main__":
    for comparison in measure(int(sys.argv[1]) if len(sys.argv) > 1 else EXPERIMENTS):
        show(comparison, Console())

"""Many machines: emulated ones with a planted setting, fleets with a known truth, and how large an answer may become.

``python -m benchmarks.fleet.many 10000 20`` says what analysis and report of so many machines take.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ajuste.model.fleet import FleetPlan
from ajuste_fleet.model import fleet_of
from benchmarks.comparison import Comparison
from benchmarks.fleet.emulated import measured
from benchmarks.fleet.simulated import ALPHA, cells, simulated
from benchmarks.place import own_home

FLEETS: Final = int(os.environ.get("AJUSTE_BENCH_FLEETS", "2000"))
MACHINES: Final = 20
MANY: Final = (10_000, 20)
LEAST_COVERAGE: Final = 0.93
MOST_SECONDS: Final = 300.0
MOST_MB: Final = 4000.0


def measure() -> Iterator[Comparison]:
    """The fleet of guests, the simulated ones, and ten thousand machines on paper."""
    yield _emulated()
    yield from _simulated()
    yield _many()


def _emulated() -> Comparison:
    with own_home() as place, tempfile.TemporaryDirectory() as directory:
        began = time.monotonic()
        results = measured(MACHINES, FleetPlan(), Path(directory), place)
        took_s = time.monotonic() - began
    (fleet,) = (summary for summary in fleet_of(results) if summary.metric == "elapsed")
    single = MACHINES // 5
    named = fleet.differing.fact if fleet.differing else "none"
    return Comparison(
        name="fleet-emulated",
        what=f"{fleet.says}",
        unit="s",
        figures={f"{MACHINES} guests, each a machine": [took_s]},
        goal=f"improves on {MACHINES - single}, worsens on {single}: those with one NUMA node",
        reached=fleet.verdicts == {"improves": MACHINES - single, "worsens": single} and named == "one NUMA node",
    )


def _simulated() -> Iterator[Comparison]:
    shares = [simulated(cell, FLEETS, permutations=not cell.spread) for cell in cells()]
    alike = [share for share in shares if not share.cell.spread]
    yield Comparison(
        name="fleet-coverage",
        what=f"{FLEETS:,} fleets each of {len(shares)} kinds: intervals of the mean that hold",
        unit="%",
        figures={share.cell.words: [100 * share.mean] for share in shares},
        goal=f"at least {100 * LEAST_COVERAGE:g} %",
        reached=min(share.mean for share in shares) >= LEAST_COVERAGE,
    )
    yield Comparison(
        name="fleet-differ",
        what=f"{FLEETS:,} fleets each of {len(alike)} kinds in which all machines are alike, that are said to differ",
        unit="%",
        figures={share.cell.words: [100 * share.differ, 100 * share.named] for share in alike},
        goal=f"at most {100 * ALPHA:g} % by the test, and about as many by a fact",
        reached=max(share.differ for share in alike) <= ALPHA,
    )


def _many() -> Comparison:
    from benchmarks.fleet.many import measured as scale_of  # also a program of its own

    scale = scale_of(*MANY)
    return Comparison(
        name="fleet-many",
        what=f"{scale.machines:,} machines with {scale.blocks} blocks each: {scale.results_mb:.0f} MB of results, "
        f"{scale.report_mb:.1f} MB of report, {scale.memory_mb:.0f} MB of memory",
        unit="s",
        figures={"one look": [scale.look_s], "results": [scale.results_s], "report": [scale.report_s]},
        goal=f"under {MOST_SECONDS:g} s and {MOST_MB:g} MB",
        reached=scale.look_s + scale.results_s + scale.report_s < MOST_SECONDS and scale.memory_mb < MOST_MB,
    )

"""Play sessions on machines that crash, and look at what they leave: ``python -m benchmarks.simulation``.

The agent's own keeper, guardian, journal, registry and restoring run on machines in memory, behind the machine's lock
(see ``native/agent/src/safety/simulation``). Nothing may be left behind under any seed; and what is broken on purpose
(the syncing, the order of journal and value, the boot's id, the lock) must be found within 1,000 of them, as what it
is. A seed that goes wrong is had again, step by step, with ``--first SEED --seeds 1``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks.comparison import Comparison

ROOT = Path(__file__).parents[1]
PLANTED = ("no-sync", "write-first", "no-boot-id", "no-lock")
SEEDS = 100_000
FOUND_WITHIN = 1000
_COMMAND = ["cargo", "test", "--quiet", "--package", "ajuste-agent", "--lib", "safety::simulation::many"]


@dataclass(frozen=True)
class Found:
    """``planted`` is what was broken on purpose, if anything; ``seeds`` how many it took, or how many there were."""

    planted: str
    seeds: int
    seconds: float
    wrong_seed: int | None
    reason: str | None


@dataclass(frozen=True)
class Simulation:
    as_it_is: Found
    broken: tuple[Found, ...]

    @property
    def clean(self) -> bool:
        return self.as_it_is.wrong_seed is None and all(variant.wrong_seed is not None for variant in self.broken)


def simulate(first: int, seeds: int, planted: str = "") -> Found:
    """Simulate on all CPUs, up to the first seed under which something does not hold.

    Raises RuntimeError if there is no answer.
    """
    began = time.monotonic()
    shares = min(os.cpu_count() or 1, seeds)
    bounds = [first + seeds * share // shares for share in range(shares + 1)]
    with ThreadPoolExecutor(shares) as pool:
        results = list(pool.map(lambda pair: _run_seeds(pair[0], pair[1] - pair[0], planted), pairwise(bounds)))
    wrong = [(seed, reason) for seed, reason in results if seed is not None]
    seed, reason = min(wrong) if wrong else (None, None)
    return Found(planted, seeds if seed is None else seed - first + 1, time.monotonic() - began, seed, reason)


def _run_seeds(first: int, seeds: int, planted: str) -> tuple[int | None, str | None]:
    environment = os.environ | {
        "AJUSTE_FIRST_SEED": str(first),
        "AJUSTE_SEEDS": str(seeds),
        "AJUSTE_PLANTED": planted,
        # Several times as fast as what is built for the other tests.
        "CARGO_PROFILE_TEST_OPT_LEVEL": "3",
    }
    argv = [*_COMMAND, "--", "--ignored", "--nocapture"]
    ended = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in ended.stdout.splitlines() if line.startswith('{"first"')]
    if ended.returncode != 0 or len(lines) != 1:
        raise RuntimeError(f"the simulation ended with {ended.returncode}: {ended.stderr.strip()[-2000:]}")
    if seeds == 1:
        print("\n".join(ended.stdout.splitlines()[:-3]), file=sys.stderr)
    document = json.loads(lines[0])
    return document["wrong seed"], document["reason"]


def play(first: int = 0, seeds: int = SEEDS, planted: Sequence[str] = PLANTED) -> Simulation:
    """Simulate so many seeds as it is, and up to ``FOUND_WITHIN`` of each that is broken."""
    return Simulation(simulate(first, seeds), tuple(simulate(0, FOUND_WITHIN, fault) for fault in planted))


def measure() -> tuple[Comparison, ...]:
    return (comparison(play()),)


def comparison(simulation: Simulation) -> Comparison:
    """Compare how many seeds went well, and how many it took to find what is broken on purpose."""
    return Comparison(
        name="simulation",
        what="seeds of crashes and disk faults until something does not hold",
        unit="seeds",
        figures={
            result.planted or "as it is": [float(result.seeds)] for result in (simulation.as_it_is, *simulation.broken)
        },
        goal=f"nothing as it is, and what is broken on purpose within {FOUND_WITHIN:,} seeds",
        reached=simulation.clean,
    )


def table(simulation: Simulation) -> str:
    lines = ["| broken on purpose | seeds | seconds | what was found |", "| --- | --- | --- | --- |"]
    for result in (simulation.as_it_is, *simulation.broken):
        what = "nothing" if result.wrong_seed is None else f"seed {result.wrong_seed}: {result.reason}"
        lines.append(f"| {result.planted or 'nothing'} | {result.seeds} | {result.seconds:.0f} | {what} |")
    return "\n".join([*lines, "", "clean" if simulation.clean else "NOT CLEAN"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    if chosen.seeds < 1 or chosen.first < 0:
        parser.error("--seeds must be at least 1, and --first at least 0")
    simulation = play(chosen.first, chosen.seeds)
    print(json.dumps(asdict(simulation) | {"clean": simulation.clean}, indent=2) if chosen.json else table(simulation))
    return 0 if simulation.clean else 1


if __name__ == "__main__":
    sys.exit(main())

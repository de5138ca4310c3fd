"""Play sessions on machines that crash, and look at what they leave: ``python -m benchmarks.simulation``.

The agent's own keeper, guardian, journal, registry and restoring run on machines in memory (see
``native/agent/src/safety/simulation``). Nothing may be left behind under any seed; and what is broken on purpose (the
syncing, the order of journal and value, the boot's id) must be found within 1,000 of them. A seed that goes wrong is
had again with ``--first SEED --seeds 1``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLANTED = ("no-sync", "write-first", "no-boot-id")
FOUND_WITHIN = 1000
_COMMAND = ["cargo", "test", "--quiet", "--package", "ajuste-agent", "--lib", "safety::simulation::many"]


@dataclass(frozen=True)
class Found:
    """``planted`` is what was broken on purpose, if anything; ``seeds`` how many it took, or how many there were."""

    planted: str
    seeds: int
    wrong_seed: int | None
    reason: str | None


def simulate(first: int, seeds: int, planted: str = "") -> Found:
    """Up to the first seed under which something does not hold. Raises RuntimeError if there is no answer."""
    environment = os.environ | {
        "AJUSTE_FIRST_SEED": str(first),
        "AJUSTE_SEEDS": str(seeds),
        "AJUSTE_PLANTED": planted,
    }
    argv = [*_COMMAND, "--", "--ignored", "--nocapture"]
    ended = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in ended.stdout.splitlines() if line.startswith('{"first"')]
    if ended.returncode != 0 or len(lines) != 1:
        raise RuntimeError(f"the simulation ended with {ended.returncode}: {ended.stderr.strip()[-2000:]}")
    said = json.loads(lines[0])
    wrong = said["wrong seed"]
    return Found(planted, seeds if wrong is None else wrong - first + 1, wrong, said["reason"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    as_it_is = simulate(chosen.first, chosen.seeds)
    broken = [simulate(0, FOUND_WITHIN, planted) for planted in PLANTED]
    clean = as_it_is.wrong_seed is None and all(found.wrong_seed is not None for found in broken)
    if chosen.json:
        found = {"as it is": asdict(as_it_is), "broken on purpose": [asdict(one) for one in broken], "clean": clean}
        print(json.dumps(found, indent=2))
    else:
        print(
            f"| broken on purpose | seeds | what was found |\n| --- | --- | --- |\n| nothing | {as_it_is.seeds} | ",
            end="",
        )
        print(f"seed {as_it_is.wrong_seed}: {as_it_is.reason} |" if as_it_is.reason else "nothing |")
        for one in broken:
            print(f"| {one.planted} | {one.seeds} | {one.reason or 'NOTHING'} |")
        print("clean" if clean else "NOT CLEAN")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())

"""``python -m benchmarks.reboots``: more kills of the played machine, or power cuts of the emulated one."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from benchmarks.comparison import show
from benchmarks.reboots import kills


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reboots", description=__doc__)
    parser.add_argument("--kills", type=int, metavar="N", help="kill experiments on the played machine N times")
    asked = parser.parse_args()
    reached = True
    for comparison in kills.measure(asked.kills or kills.KILLS):
        show(comparison, Console())
        reached = reached and comparison.reached
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())

"""``python -m benchmarks.reboots``: more kills of the played machine, or power cuts of the emulated one."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from benchmarks.comparison import show
from benchmarks.reboots import emulated, kills


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reboots", description=__doc__)
    parser.add_argument("--kills", type=int, metavar="N", help="kill experiments on the played machine N times")
    parser.add_argument("--cuts", type=int, metavar="N", help="cut the power of the emulated machine N times")
    parser.add_argument(
        "--compare", action="store_true", help="compare mitigations, then two kernels, on the emulated machine"
    )
    asked = parser.parse_args()
    if asked.compare:
        for command in (emulated.MITIGATIONS, emulated.KERNELS):
            tell(emulated.conduct(command))
        return 0
    reached = True
    for comparison in emulated.power_cuts(asked.cuts) if asked.cuts else kills.measure(asked.kills or kills.KILLS):
        show(comparison, Console())
        reached = reached and comparison.reached
    return 0 if reached else 1


def tell(ended: emulated.Ended) -> None:
    """The answer, the verdicts and the boots of an experiment of the emulated machine."""
    report = ended.report
    print(report["answer"])
    for verdict in report["verdicts"]:
        print(*(verdict[name] for name in ("configuration", "metric", "verdict", "estimate", "low", "high", "blocks")))
    print(*report["boots"]["says"], sep="\n")
    for spread in report["boots"]["spreads"]:
        print(spread)
    for boot in report["boots"]["kept"]["boots"]:
        print(boot["number"], boot["state"], boot["kernel"], boot["outcome"], len(boot["trials"]))
    print(f"{len(ended.boots)} boots in {ended.seconds:.0f} s; boot files as before: {ended.as_before}")


if __name__ == "__main__":
    sys.exit(main())

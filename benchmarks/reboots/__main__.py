"""``python -m benchmarks.reboots``: more kills of the played machine, or power cuts of the emulated one."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Final

from rich.console import Console

from ajuste_boots.model import FINDINGS
from benchmarks.comparison import show
from benchmarks.gallery.marks import put
from benchmarks.gallery.pages import GALLERY
from benchmarks.gallery.shown import of_run
from benchmarks.reboots import emulated, kills
from benchmarks.reboots.image import image

PAGE: Final = GALLERY / "reboots.md"
PICTURE: Final = "elapsed-time-by-boot"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reboots", description=__doc__)
    parser.add_argument("--kills", type=int, metavar="N", help="kill experiments on the played machine N times")
    parser.add_argument("--cuts", type=int, metavar="N", help="cut the power of the emulated machine N times")
    parser.add_argument(
        "--within",
        type=float,
        default=emulated.CUT_WITHIN,
        metavar="BOOTS",
        help="cut the power within so many boots (default: %(default)g)",
    )
    parser.add_argument(
        "--compare",
        nargs="*",
        choices=list(emulated.COMPARISONS),
        metavar="WHAT",
        help=f"compare {' or '.join(emulated.COMPARISONS)} on the emulated machine (default: both)",
    )
    arguments = parser.parse_args()
    if arguments.compare is not None:
        disk = image(emulated.CACHE)
        for what in arguments.compare or emulated.COMPARISONS:
            tell(emulated.conduct(disk, emulated.COMPARISONS[what], keep=emulated.KEPT / what))
            put_into_page(what)
        return 0
    reached = True
    cut_or_killed = (
        emulated.power_cuts(arguments.cuts, arguments.within)
        if arguments.cuts
        else kills.measure(arguments.kills or kills.KILLS)
    )
    for comparison in cut_or_killed:
        show(comparison, Console())
        reached = reached and comparison.reached
    return 0 if reached else 1


def put_into_page(what: str) -> None:
    """The run of ``what`` on the emulated machine, in its place on the page of the gallery."""
    command = f"```sh\nsudo {shlex.join(emulated.COMPARISONS[what])}\n```"
    text = of_run(what, command, f"reboots-{what}", ("elapsed", "system-time"), (PICTURE,), emulated.KEPT / what)
    PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), what, text), encoding="utf-8")


def tell(ended: emulated.Ended) -> None:
    """The answer, the verdicts and the boots of an experiment of the emulated machine."""
    results = ended.results
    if results is None or (findings := FINDINGS.of(results)) is None:
        raise SystemExit("the experiment was given up")
    print(results.answer)
    for verdict in results.verdicts:
        print(
            verdict.configuration,
            verdict.metric,
            verdict.verdict,
            verdict.estimate,
            verdict.low,
            verdict.high,
            verdict.blocks,
        )
    print(*findings.says, *findings.spreads, sep="\n")
    for boot in findings.kept.boots:
        print(boot.number, boot.state, boot.kernel, boot.outcome, len(boot.trials))
    print(f"{len(ended.command_lines)} boots in {ended.seconds:.0f} s; boot files as before: {ended.as_before}")


if __name__ == "__main__":
    sys.exit(main())

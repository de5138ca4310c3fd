"""STREAM: the bandwidth of memory in four loops over arrays.

Source: stream.c 5.10 (main, checkSTREAMresults). Its MB are 10^6 bytes.
"""

from __future__ import annotations

from typing import Final

from ajuste.outputs.printed import NUMBER, PrintedReport, PrintedRow, printed_metric


def _loop(label: str) -> PrintedRow:
    name = label.lower()
    return PrintedRow(
        rf"{label}:\s+",
        rf"({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})",
        (
            printed_metric(name, f"Best rate of {name}", "MB/s", "higher", step=0.1),
            printed_metric(f"{name}-time", f"Mean time of {name}", "s", "lower", step=1e-6),
            printed_metric(f"{name}-time-min", f"Shortest time of {name}", "s", "lower", step=1e-6),
            printed_metric(f"{name}-time-max", f"Longest time of {name}", "s", "lower", step=1e-6),
        ),
    )


REPORT: Final = PrintedReport(
    name="stream",
    title="STREAM",
    begins=r"^STREAM version \$Revision",
    needed=("copy", "scale", "add", "triad"),
    main="copy|scale|add|triad",
    rows=tuple(map(_loop, ("Copy", "Scale", "Add", "Triad"))),
    failed=((r"^Failed Validation (.{1,200})", "STREAM computed wrong results: {}"),),
)
TEXTS: Final = REPORT.texts()
parse = REPORT.parse

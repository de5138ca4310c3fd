"""dbench and tbench 4: the throughput of all clients, and how long each kind of operation took.

Source: dbench 4.0, dbench.c (show_one_latency, report_latencies, main). Its MB are 10^6 bytes.
"""

from __future__ import annotations

from typing import Final

from ajuste.outputs.printed import NUMBER, PrintedReport, PrintedRow, printed_metric

OPERATIONS: Final = (
    *("NTCreateX", "Close", "Rename", "Unlink", "Deltree", "Mkdir", "Qpathinfo", "Qfileinfo", "Qfsinfo"),
    *("Sfileinfo", "Find", "WriteX", "ReadX", "LockX", "UnlockX", "Flush"),
)


def _operation(name: str) -> PrintedRow:
    """Latencies are printed in ms, without the unit."""
    word = name.lower()
    return PrintedRow(
        rf"\s*{name}\s+(?=\d)",
        rf"(\d+)\s+({NUMBER})\s+({NUMBER})",
        (
            printed_metric(f"{word}-count", f"Number of {name}", "", "none", step=1, can_be_0=True),
            printed_metric(f"{word}-latency", f"Mean latency of {name}", "ms", "lower", step=1e-3, can_be_0=True),
            printed_metric(
                f"{word}-latency-max", f"Longest latency of {name}", "ms", "lower", step=1e-3, can_be_0=True
            ),
        ),
    )


REPORT: Final = PrintedReport(
    name="dbench",
    title="dbench",
    begins=r"^dbench version \d",
    needed=("throughput",),
    main="throughput|latency-max",
    rows=(
        PrintedRow(
            r"Throughput\s+",
            rf"({NUMBER}) MB/sec\s+(?:\(sync open\)\s+|\(sync dirs\)\s+)*\d+ clients\s+\d+ procs\s+"
            rf"max_latency=({NUMBER}) ?ms",
            (
                printed_metric("throughput", "Throughput", "MB/s", "higher", step=1e-3),
                printed_metric("latency-max", "Longest latency", "ms", "lower", step=1e-3),
            ),
        ),
        *map(_operation, OPERATIONS),
    ),
)
TEXTS: Final = REPORT.texts()
parse = REPORT.parse

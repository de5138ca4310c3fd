"""UnixBench: the result of each test and its index, which is the ratio to a machine of 1995.

Source: byte-unixbench 6.0, UnixBench/Run (logResults, logIndexCategory).
"""

from __future__ import annotations

from typing import Final

from ajuste.outputs.printed import NUMBER, PrintedReport, PrintedRow, printed_metric

_TESTS: Final = (
    ("Dhrystone 2 using register variables", "dhrystone"),
    ("Double-Precision Whetstone", "whetstone"),
    ("Execl Throughput", "execl"),
    ("File Copy 1024 bufsize 2000 maxblocks", "file-copy-1024"),
    ("File Copy 256 bufsize 500 maxblocks", "file-copy-256"),
    ("File Copy 4096 bufsize 8000 maxblocks", "file-copy-4096"),
    ("Pipe Throughput", "pipe"),
    ("Pipe-based Context Switching", "context-switch"),
    ("Process Creation", "process-creation"),
    (r"Shell Scripts \(1 concurrent\)", "shell-1"),
    (r"Shell Scripts \(8 concurrent\)", "shell-8"),
    ("System Call Overhead", "system-call"),
)


def _test(label: str, name: str) -> PrintedRow:
    title = label.replace("\\", "")
    return PrintedRow(
        rf"{label}\s+(?={NUMBER}\s+{NUMBER}\s+{NUMBER}$)",
        rf"{NUMBER}\s+({NUMBER})\s+({NUMBER})",
        (
            printed_metric(name, title, "", "higher", step=0.1),
            printed_metric(f"{name}-index", f"Index of {title}", "", "higher", step=0.1),
        ),
    )


REPORT: Final = PrintedReport(
    name="unixbench",
    title="UnixBench",
    begins=r"^Benchmark Run: ",
    needed=("index",),
    main=r"index",
    rows=(
        *(_test(label, name) for label, name in _TESTS),
        PrintedRow(
            r"System Benchmarks Index Score(?: \(Partial Only\))?\s+",
            rf"({NUMBER})",
            (printed_metric("index", "Index of all tests", "", "higher", step=0.1),),
        ),
    ),
)
TEXTS: Final = REPORT.texts()
parse = REPORT.parse

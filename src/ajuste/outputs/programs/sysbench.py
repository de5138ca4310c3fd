"""sysbench 1.0 and 1.1: events a second, their latency, and what a test says of its own.

Source: sysbench 1.0.20, src/sysbench.c (sb_report_*, print_global_stats), src/tests/*/*.c (*_report_cumulative).
"""

from __future__ import annotations

from typing import Final

from ajuste.model.metric import Metric
from ajuste.outputs.printed import NUMBER, PrintedReport, PrintedRow, printed_metric

_MS: Final = 1e-3


def _row(label: str, metric: Metric, *, rest: str = "", factor: float = 1.0) -> PrintedRow:
    return PrintedRow(rf"\s+{label}:\s*", rf"({NUMBER}){rest}", (metric,), factor=factor)


def _latency(label: str, name: str, title: str) -> PrintedRow:
    metric = printed_metric(name, title, "s", "lower", step=1e-5, can_be_0=True)
    return PrintedRow(rf"\s+{label}:\s*", rf"({NUMBER})", (metric,), section="Latency", factor=_MS)


def _counted(label: str, name: str, title: str, *, good: bool) -> PrintedRow:
    """A count and what it is a second."""
    rate = printed_metric(
        f"{name}-per-second", f"{title} a second", "1/s", "higher" if good else "lower", can_be_0=True
    )
    count = printed_metric(name, title, "", "none", step=1, can_be_0=True)
    return PrintedRow(rf"\s+{label}:\s*", rf"({NUMBER})\s+\(({NUMBER}) per sec\.\)", (count, rate))


def _fileio(word: str) -> PrintedRow:
    """Of 1.1: IOPS, and of what transfers data MiB/s and MB/s."""
    return PrintedRow(
        rf"\s+{word}:\s*(?=IOPS)",
        rf"IOPS=({NUMBER})\s+({NUMBER}) MiB/s \({NUMBER} MB/s\)",
        (
            printed_metric(f"{word}s", f"{word.capitalize()}s a second", "1/s", "higher", can_be_0=True),
            printed_metric(f"{word}-bandwidth", f"Bandwidth of {word}s", "MiB/s", "higher", can_be_0=True),
        ),
    )


_RATES: Final = (
    _row("events per second", printed_metric("events-per-second", "Events a second", "1/s", "higher", step=0.01)),
    _row(r"events/s \(eps\)", printed_metric("events-per-second", "Events a second", "1/s", "higher")),
    _row("time elapsed", printed_metric("duration", "Duration", "s", "none"), rest="s"),
    _row("total time", printed_metric("duration", "Duration", "s", "none", step=1e-4), rest="s"),
    _row("total number of events", printed_metric("events", "Events", "", "none", step=1)),
)
_MEMORY: Final = (
    PrintedRow(
        r"Total operations:\s*",
        rf"({NUMBER}) \(\s*({NUMBER}) per second\)",
        (
            printed_metric("operations", "Operations", "", "none", step=1),
            printed_metric("operations-per-second", "Operations a second", "1/s", "higher"),
        ),
    ),
    PrintedRow(
        rf"(?={NUMBER} MiB transferred)",
        rf"({NUMBER}) MiB transferred \(({NUMBER}) MiB/sec\)",
        (
            printed_metric("transferred", "Data transferred", "MiB", "none"),
            printed_metric("transfer", "Transfer rate", "MiB/s", "higher"),
        ),
    ),
)
_FILES: Final = (
    _row("reads/s", printed_metric("reads", "Reads a second", "1/s", "higher", can_be_0=True)),
    _row("writes/s", printed_metric("writes", "Writes a second", "1/s", "higher", can_be_0=True)),
    _row("fsyncs/s", printed_metric("fsyncs", "Calls of fsync a second", "1/s", "higher", can_be_0=True)),
    _row("read, MiB/s", printed_metric("read-bandwidth", "Bandwidth of reads", "MiB/s", "higher", can_be_0=True)),
    _row("written, MiB/s", printed_metric("write-bandwidth", "Bandwidth of writes", "MiB/s", "higher", can_be_0=True)),
    _fileio("read"),
    _fileio("write"),
    PrintedRow(
        r"\s+fsync:\s*IOPS=",
        rf"({NUMBER})",
        (printed_metric("fsyncs", "Calls of fsync a second", "1/s", "higher", can_be_0=True),),
    ),
)
_DATABASE: Final = (
    *(
        PrintedRow(
            rf"\s+{word}:\s*(?=\d)",
            rf"({NUMBER})",
            (printed_metric(f"queries-{word}", f"Queries, {word}", "", "none", step=1, can_be_0=True),),
        )
        for word in ("read", "write", "other", "total")
    ),
    _counted("transactions", "transactions", "Transactions", good=True),
    _counted("queries", "queries", "Queries", good=True),
    _counted("ignored errors", "ignored-errors", "Ignored errors", good=False),
    _counted("reconnects", "reconnects", "Reconnects", good=False),
)
_LATENCIES: Final = (
    _latency("min", "latency-min", "Shortest latency"),
    _latency("avg", "latency", "Mean latency"),
    _latency("max", "latency-max", "Longest latency"),
    _latency(rf"(?P<which>{NUMBER})th percentile", "latency-p{}", "Latency, {} % quantile"),
    PrintedRow(
        r"\s+sum:\s*",
        rf"({NUMBER})",
        (printed_metric("latency-sum", "Sum of the latencies", "s", "none", step=1e-5, can_be_0=True),),
        section="Latency",
        factor=_MS,
    ),
)
_FAIRNESS: Final = tuple(
    PrintedRow(
        rf"\s+{label} \(avg/stddev\):\s*",
        rf"({NUMBER})/({NUMBER})",
        (
            printed_metric(name, title, unit, "none", can_be_0=True),
            printed_metric(f"{name}-sd", f"{title}, spread", unit, "lower", can_be_0=True),
        ),
    )
    for label, name, title, unit in (
        ("events", "thread-events", "Events of a thread", ""),
        ("execution time", "thread-time", "Execution time of a thread", "s"),
    )
)

REPORT: Final = PrintedReport(
    name="sysbench",
    title="sysbench",
    begins=r"^sysbench \d",
    needed=("duration", "events", "latency", "thread-time"),
    main=r"(?:events|operations|transactions)-per-second|transfer|reads|writes|latency(?:-p.*)?",
    rows=(*_RATES, *_MEMORY, *_FILES, *_DATABASE, *_LATENCIES, *_FAIRNESS),
    heading=r"^(\w+)\b.*:$",
    failed=((r"^FATAL: (.{1,200})", "sysbench failed: {}"),),
)
TEXTS: Final = REPORT.texts()
parse = REPORT.parse

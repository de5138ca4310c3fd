"""netperf with chosen figures as ``NAME=VALUE`` (test option ``-k``): rates and latencies of a test.

Source: netperf 2.7, src/nettest_omni.c (netperf_output_source). Its latencies are in microseconds.
"""

from __future__ import annotations

from typing import Final

from ajuste.model.metric import Direction
from ajuste.outputs.printed import NUMBER, PrintedReport, PrintedRow, printed_metric


def _figure(label: str, name: str, title: str, unit: str, direction: Direction, factor: float = 1.0) -> PrintedRow:
    metric = printed_metric(name, title, unit, direction, can_be_0=True)
    return PrintedRow(rf"{label}=", rf"({NUMBER})", (metric,), factor=factor)


def _latency(label: str, name: str, title: str, direction: Direction = "lower") -> PrintedRow:
    return _figure(f"{label}_LATENCY", name, title, "s", direction, 1e-6)


REPORT: Final = PrintedReport(
    name="netperf",
    title="netperf",
    begins=r"^MIGRATED (?:TCP|UDP|SCTP) .{1,60} TEST ",
    needed=("throughput",),
    main=r"throughput|latency(?:-p\d+)?",
    rows=(
        _figure("THROUGHPUT", "throughput", "Throughput, in the unit of the test", "", "higher"),
        _figure("TRANSACTION_RATE", "transactions-per-second", "Transactions per second", "1/s", "higher"),
        _figure("ELAPSED_TIME", "elapsed", "Duration", "s", "none"),
        _figure("LOCAL_CPU_UTIL", "client-cpu", "CPU used by the client's side", "%", "lower"),
        _latency("MIN", "latency-min", "Shortest latency"),
        _latency("MEAN", "latency", "Mean latency"),
        _latency("P50", "latency-p50", "Median latency"),
        _latency("P90", "latency-p90", "Latency, 90 % quantile"),
        _latency("P99", "latency-p99", "Latency, 99 % quantile"),
        _latency("MAX", "latency-max", "Longest latency"),
        _latency("STDDEV", "latency-sd", "Spread of the latency", "none"),
    ),
    failed=((r"^(?:netperf|establish control): (.{1,200})", "netperf failed: {}"),),
)
TEXTS: Final = REPORT.texts()
parse = REPORT.parse

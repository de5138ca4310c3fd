"""redis-benchmark with ``--csv``: requests per second and latencies of each command.

Source: Redis 7.0, src/redis-benchmark.c (showLatencyReport). Its latencies are in milliseconds.
"""

from __future__ import annotations

from typing import Final

from ajuste.outputs.base import ParseError, excerpt
from ajuste.outputs.printed import NUMBER, PrintedReport, PrintedRow, printed_metric

_FIGURE: Final = rf'"({NUMBER})"'
_LATENCIES: Final = (
    ("latency", "Mean latency"),
    ("latency-min", "Shortest latency"),
    ("latency-p50", "Median latency"),
    ("latency-p95", "Latency, 95 % quantile"),
    ("latency-p99", "Latency, 99 % quantile"),
    ("latency-max", "Longest latency"),
)

REPORT: Final = PrintedReport(
    name="redis-benchmark",
    title="redis-benchmark --csv",
    begins=r'^"test","rps","avg_latency_ms"',
    needed=(),
    main=r".*-(?:per-second|latency|latency-p\d+)",
    rows=(
        PrintedRow(
            r'"(?P<which>[A-Za-z0-9_]{1,40})[^"]{0,80}",(?="\d)',
            ",".join((_FIGURE,) * (1 + len(_LATENCIES))),
            (
                printed_metric("{}-per-second", "{} requests per second", "1/s", "higher", step=0.01),
                *(
                    printed_metric(f"{{}}-{name}", f"{title} of {{}}", "ms", "lower", step=1e-3, can_be_0=True)
                    for name, title in _LATENCIES
                ),
            ),
        ),
    ),
    failed=((r"^(?:ERROR|Error)\b(.{1,200})", "redis-benchmark failed:{}"),),
)
TEXTS: Final = REPORT.texts()


def parse(output: str) -> dict[str, float]:
    """The figures of a live run; names of commands are in lower case. Raises ParseError without any command."""
    found = {name.lower(): value for name, value in REPORT.parse(output).items()}
    if not found:
        raise ParseError(f"redis-benchmark measured no command: {excerpt(output)}")
    return found

"""memtier_benchmark, a client of Redis and memcached: operations and latencies of each kind of request.

Source: memtier_benchmark 2.1, run_stats.cpp (print). Its latencies are in milliseconds, its KB are 1024 bytes.
"""

from __future__ import annotations

from typing import Final

from ajuste.outputs.printed import NUMBER, PrintedReport, PrintedRow, printed_metric

_HIT: Final = rf"(?:{NUMBER}|---)"


def _row(label: str, name: str, hits: str = _HIT) -> PrintedRow:
    """The default quantiles; with ``hits`` as a group, also how many keys were found."""
    found = hits != _HIT
    counted = (
        printed_metric(f"{name}-hits-per-second", f"Keys found per second, {name}", "1/s", "none", can_be_0=True),
        printed_metric(f"{name}-misses-per-second", f"Keys not found per second, {name}", "1/s", "none", can_be_0=True),
    )
    latencies = (
        ("latency", "Mean latency"),
        ("latency-p50", "Median latency"),
        ("latency-p99", "Latency, 99 % quantile"),
        ("latency-p99.9", "Latency, 99.9 % quantile"),
    )
    return PrintedRow(
        rf"{label}\s+(?={NUMBER})",
        r"\s+".join((rf"({NUMBER})", hits, hits, *([rf"({NUMBER})"] * 5))),
        (
            printed_metric(f"{name}-per-second", f"{label} per second", "1/s", "higher", step=0.01, can_be_0=True),
            *(counted if found else ()),
            *(
                printed_metric(f"{name}-{word}", f"{title} of {name}", "ms", "lower", step=1e-5, can_be_0=True)
                for word, title in latencies
            ),
            printed_metric(f"{name}-transfer", f"Data of {name} per second", "KiB/s", "higher", can_be_0=True),
        ),
    )


REPORT: Final = PrintedReport(
    name="memtier",
    title="memtier_benchmark",
    begins=r"^ALL STATS",
    needed=("totals-per-second",),
    main=r"totals-(?:per-second|latency|latency-p.*)",
    rows=(
        _row("Sets", "sets"),
        _row("Gets", "gets", rf"({NUMBER})"),
        _row("Totals", "totals", rf"({NUMBER})"),
    ),
)
TEXTS: Final = REPORT.texts()
parse = REPORT.parse

"""perf bench: messages, pipes, system calls, futexes, epoll, and the bandwidth of memory and of NUMA nodes.

Source: Linux 6.1, tools/perf/bench/*.c. Its GB/sec are 2^30 bytes per second (mem-functions.c, print_bps),
but 10^9 in bench numa.
"""

from __future__ import annotations

from typing import Final

from ajuste.model.metric import Direction
from ajuste.outputs.printed import NUMBER, PrintedReport, PrintedRow, printed_metric

_SPREAD: Final = rf"(?: \(\+-\s*{NUMBER}%\))?"


def _row(
    before: str,
    after: str,
    name: str,
    unit: str,
    direction: Direction,
    *,
    factor: float = 1.0,
    step: float = 0.0,
) -> PrintedRow:
    """A line with one figure between two texts."""
    metric = printed_metric(name, name, unit, direction, step=step)
    return PrintedRow(rf"{before}(?={NUMBER}{after})", rf"({NUMBER}){after}", (metric,), factor=factor)


_SCHEDULING: Final = (
    _row(r"\s+Total time: ", r" \[sec\]", "time", "s", "lower", step=1e-3),
    _row(r"\s+", r" usecs/op", "time-per-operation", "s", "lower", factor=1e-6),
    _row(r"\s+", r" ops/sec", "operations-per-second", "1/s", "higher"),
)
_FUTEX: Final = (
    _row(r"Averaged ", rf" operations/sec{_SPREAD}, total secs = \d+", "operations-per-second", "1/s", "higher"),
    _row(r"Averaged ", rf" ops/sec{_SPREAD}, total secs = \d+", "operations-per-second", "1/s", "higher"),
    _row(r"Wokeup \d+ of \d+ threads in ", rf" ms{_SPREAD}", "wake-time", "s", "lower", factor=1e-3, step=1e-7),
    _row(r"Requeued \d+ of \d+ threads in ", rf" ms{_SPREAD}", "requeue-time", "s", "lower", factor=1e-3, step=1e-7),
    _row(
        r"Avg per-thread latency \(waking \d+/\d+ threads\) in ",
        rf" ms{_SPREAD}",
        "wake-latency",
        "s",
        "lower",
        factor=1e-3,
        step=1e-7,
    ),
)
_EPOLL: Final = tuple(
    _row(r"Averaged ", rf" {word} operations{_SPREAD}", f"{word.lower()}-operations", "", "higher", step=1.0)
    for word in ("ADD", "MOD", "DEL")
)
_MEMORY: Final = (
    PrintedRow(
        rf"\s+(?={NUMBER} GB/sec)",
        rf"({NUMBER}) GB/sec",
        (printed_metric("{section}", "Bandwidth, {section}", "GiB/s", "higher"),),
    ),
)

_NUMA: Final = (
    _row(r"\s+", r" secs slowest \(max\) thread-runtime", "runtime-max", "s", "lower", step=1e-3),
    _row(r"\s+", r" secs fastest \(min\) thread-runtime", "runtime-min", "s", "none", step=1e-3),
    _row(r"\s+", r" secs average thread-runtime", "runtime", "s", "none", step=1e-3),
    _row(r"\s+", r" % difference between max/avg runtime", "runtime-difference", "%", "lower", step=1e-3),
    _row(r"\s+", r" GB data processed, per thread", "thread-data", "GB", "none", step=1e-3),
    _row(r"\s+", r" GB data processed, total", "data", "GB", "none", step=1e-3),
    _row(r"\s+", r" nsecs/byte/thread runtime", "time-per-byte", "s", "lower", factor=1e-9, step=1e-12),
    _row(r"\s+", r" GB/sec/thread speed", "thread-bandwidth", "GB/s", "higher", step=1e-3),
    _row(r"\s+", r" GB/sec total speed", "bandwidth", "GB/s", "higher", step=1e-3),
)
"""Its GB are 10^9 bytes (numa.c, __bench_numa). These go before the bandwidth of copies, which ends alike."""

REPORT: Final = PrintedReport(
    name="perf-bench",
    title="perf bench",
    begins=r"^# Running '[a-z]+/[a-z_-]+' benchmark:",
    needed=(),
    main=r"time|operations-per-second|wake-time|requeue-time|wake-latency|bandwidth|default",
    rows=(*_NUMA, *_SCHEDULING, *_FUTEX, *_EPOLL, *_MEMORY),
    heading=r"^# function '([a-z0-9-]{1,40})'",
)
parse = REPORT.parse

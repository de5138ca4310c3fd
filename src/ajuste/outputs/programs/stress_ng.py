"""stress-ng with ``--metrics``: what one stressor did, in all its instances.

Source: stress-ng 0.15.06, stress-ng.c (stress_metrics_dump). Its MB are 2^20 bytes.
"""

from __future__ import annotations

from typing import Final

from ajuste.model.metric import Direction
from ajuste.outputs.printed import NUMBER, PrintedReport, PrintedRow, printed_metric

_LINE: Final = r"stress-ng: metrc: \[\d+\] "
_COUNTS: Final = (
    printed_metric("bogo-ops", "Bogus operations", "", "none", step=1.0),
    printed_metric("real-time", "Real time", "s", "none", step=0.01, can_be_0=True),
    printed_metric("user-time", "User time", "s", "none", step=0.01, can_be_0=True),
    printed_metric("system-time", "System time", "s", "none", step=0.01, can_be_0=True),
    printed_metric("bogo-ops-per-second", "Bogus operations a second", "1/s", "higher", step=0.01),
    printed_metric("bogo-ops-per-cpu-second", "Bogus operations a second of CPU time", "1/s", "higher", step=0.01),
    printed_metric("cpu-per-instance", "CPU used per instance", "%", "none", step=0.01, can_be_0=True),
    printed_metric("peak-memory", "Peak memory", "KiB", "none", step=1.0),
)


def _own(text: str, name: str, unit: str, direction: Direction, factor: float = 1.0) -> PrintedRow:
    """What only some stressors say."""
    rest = rf"{text}(?: \(geomet?r?ic mean of \d+ instances?\))?"
    return PrintedRow(
        rf"{_LINE}[a-z0-9-]+\s+(?={NUMBER} {text})",
        rf"({NUMBER}) {rest}",
        (printed_metric(name, name, unit, direction),),
        factor=factor,
    )


REPORT: Final = PrintedReport(
    name="stress-ng",
    title="stress-ng",
    begins=rf"^{_LINE}stressor\s+bogo ops",
    needed=("bogo-ops", "bogo-ops-per-second"),
    main="bogo-ops-per-second",
    rows=(
        PrintedRow(
            rf"{_LINE}(?!stressor\b)[a-z0-9-]+\s+(?=\d+\s+{NUMBER}\s+{NUMBER}\s)",
            rf"(\d+)\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+(\d+)",
            _COUNTS,
        ),
        _own(r"nanosecs per context switch \(pipe method\)", "context-switch", "s", "lower", 1e-9),
        _own(r"swapcontext calls per sec", "swapcontext-calls", "1/s", "higher"),
        _own(r"MB per sec pipe write rate", "pipe-write-rate", "MiB/s", "higher"),
        _own(r"nanosecs per mutex", "mutex-time", "s", "lower", 1e-9),
        _own(r"ns duration per sched_yield call", "yield-time", "s", "lower", 1e-9),
        _own(r"microsecs per clone", "clone-time", "s", "lower", 1e-6),
        _own(r"nanosecs to start a pthread", "pthread-start", "s", "lower", 1e-9),
    ),
    failed=((r"^stress-ng: (?:error|fail):\s+\[\d+\] (.{1,200})", "stress-ng failed: {}"),),
)
parse = REPORT.parse

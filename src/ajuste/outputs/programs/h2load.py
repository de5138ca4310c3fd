"""h2load of nghttp2, a load generator for HTTP/1, 2 and 3: rates, and times in whatever unit fits each.

Source: nghttp2 1.52, src/h2load.cc (main), and util::format_duration and utos_funit.
"""

from __future__ import annotations

from typing import Final

from ajuste.model.metric import Direction
from ajuste.outputs.printed import NUMBER, QUANTITY, PrintedReport, PrintedRow, printed_metric


def _spread(label: str, name: str, title: str, unit: str, direction: Direction) -> PrintedRow:
    """A row of the last table."""
    return PrintedRow(
        rf"{label}\s*:\s+",
        rf"({QUANTITY})\s+({QUANTITY})\s+({QUANTITY})\s+({QUANTITY})\s+({NUMBER})%",
        (
            printed_metric(f"{name}-min", f"{title}, smallest", unit, direction, can_be_0=True),
            printed_metric(f"{name}-max", f"{title}, largest", unit, direction, can_be_0=True),
            printed_metric(name, f"{title}, mean", unit, direction, can_be_0=True),
            printed_metric(f"{name}-sd", f"{title}, spread", unit, "none", can_be_0=True),
            printed_metric(f"{name}-within-sd", f"{title}, within a standard deviation", "%", "none", can_be_0=True),
        ),
    )


REPORT: Final = PrintedReport(
    name="h2load",
    title="h2load",
    begins=r"^starting benchmark\.\.\.",
    needed=("requests-per-second", "request-time", "client-rate"),
    main=r"requests-per-second|request-time",
    rows=(
        PrintedRow(
            r"finished in ",
            rf"({QUANTITY}), ({NUMBER}) req/s, ({QUANTITY})/s",
            (
                printed_metric("duration", "Duration", "s", "none"),
                printed_metric("requests-per-second", "Requests a second", "1/s", "higher"),
                printed_metric("transfer", "Transfer rate", "bytes/s", "higher"),
            ),
        ),
        PrintedRow(
            r"requests: ",
            ", ".join(
                rf"({NUMBER}) {word}"
                for word in ("total", "started", "done", "succeeded", "failed", "errored", "timeout")
            ),
            (
                printed_metric("requests", "Requests", "", "none", step=1),
                printed_metric("started", "Requests started", "", "none", step=1),
                printed_metric("done", "Requests done", "", "none", step=1),
                printed_metric("succeeded", "Requests that succeeded", "", "none", step=1, can_be_0=True),
                printed_metric("failed", "Requests that failed", "", "lower", step=1, can_be_0=True),
                printed_metric("errored", "Requests with errors", "", "lower", step=1, can_be_0=True),
                printed_metric("timeouts", "Requests that timed out", "", "lower", step=1, can_be_0=True),
            ),
        ),
        PrintedRow(
            r"status codes: ",
            ", ".join(rf"({NUMBER}) {number}xx" for number in range(2, 6)),
            tuple(
                printed_metric(f"responses-{number}xx", f"Responses {number}xx", "", "none", step=1, can_be_0=True)
                for number in range(2, 6)
            ),
        ),
        PrintedRow(
            r"traffic: ",
            rf"{QUANTITY} \(({NUMBER})\) total, {QUANTITY} \(({NUMBER})\) headers \(space savings ({NUMBER})%\), "
            rf"{QUANTITY} \(({NUMBER})\) data",
            (
                printed_metric("traffic", "Traffic", "bytes", "none", step=1),
                printed_metric("header-traffic", "Traffic of headers", "bytes", "none", step=1, can_be_0=True),
                printed_metric("header-savings", "Space saved in headers", "%", "none", can_be_0=True),
                printed_metric("data-traffic", "Traffic of data", "bytes", "none", step=1, can_be_0=True),
            ),
        ),
        _spread("time for request", "request-time", "Time of a request", "s", "lower"),
        _spread("time for connect", "connect-time", "Time to connect", "s", "lower"),
        _spread("time to 1st byte", "first-byte-time", "Time to the first byte", "s", "lower"),
        _spread(r"req/s", "client-rate", "Requests a second of a client", "1/s", "higher"),
    ),
)
TEXTS: Final = REPORT.texts()
parse = REPORT.parse

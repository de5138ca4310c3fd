"""wrk and wrk2, load generators for HTTP: requests a second, and latencies in whatever unit fits each.

Source: wrk 4.1, src/wrk.c (print_stats, print_stats_latency, print_units) and src/units.c.
"""

from __future__ import annotations

from typing import Final

from ajuste.outputs.printed import NUMBER, QUANTITY, PrintedReport, PrintedRow, printed_metric

_STATS: Final = rf"({QUANTITY})\s+({QUANTITY})\s+({QUANTITY})\s+({NUMBER})%"
_SOCKET_ERRORS: Final = tuple(
    printed_metric(f"{name}-errors", f"Errors of sockets: {name}", "", "lower", step=1, can_be_0=True)
    for name in ("connect", "read", "write", "timeout")
)
_STATUS: Final = printed_metric(
    "error-responses", "Responses other than 2xx and 3xx", "", "lower", step=1, can_be_0=True
)

REPORT: Final = PrintedReport(
    name="wrk",
    title="wrk",
    begins=r"^Running \S{1,9} test @ ",
    needed=("requests-per-second", "transfer"),
    main=r"requests-per-second|latency(?:-p.*)?",
    rows=(
        PrintedRow(
            r"\s+Latency\s+(?=[\d-])",
            _STATS,
            (
                printed_metric("latency", "Mean latency", "s", "lower"),
                printed_metric("latency-sd", "Spread of the latency", "s", "none", can_be_0=True),
                printed_metric("latency-max", "Longest latency", "s", "lower"),
                printed_metric(
                    "latency-within-sd", "Latencies within a standard deviation", "%", "none", can_be_0=True
                ),
            ),
        ),
        PrintedRow(
            r"\s+Req/Sec\s+",
            _STATS,
            (
                printed_metric("thread-rate", "Requests a second of a thread", "1/s", "higher"),
                printed_metric("thread-rate-sd", "Spread of a thread's rate", "1/s", "none", can_be_0=True),
                printed_metric("thread-rate-max", "Highest rate of a thread", "1/s", "higher"),
                printed_metric(
                    "thread-rate-within-sd", "Rates within a standard deviation", "%", "none", can_be_0=True
                ),
            ),
        ),
        PrintedRow(
            rf"\s+(?P<which>{NUMBER})%\s+",
            rf"({QUANTITY})",
            (printed_metric("latency-p{}", "Latency, {} % quantile", "s", "lower"),),
        ),
        PrintedRow(
            rf"\s+(?={NUMBER} requests in)",
            rf"({NUMBER}) requests in ({QUANTITY}), ({QUANTITY}) read",
            (
                printed_metric("requests", "Requests", "", "none", step=1),
                printed_metric("duration", "Duration", "s", "none"),
                printed_metric("read", "Data read", "bytes", "none"),
            ),
        ),
        PrintedRow(
            r"\s+Socket errors: ",
            rf"connect ({NUMBER}), read ({NUMBER}), write ({NUMBER}), timeout ({NUMBER})",
            _SOCKET_ERRORS,
        ),
        PrintedRow(r"\s+Non-2xx or 3xx responses: ", rf"({NUMBER})", (_STATUS,)),
        PrintedRow(
            r"Requests/sec:\s*",
            rf"({NUMBER})",
            (printed_metric("requests-per-second", "Requests a second", "1/s", "higher"),),
        ),
        PrintedRow(
            r"Transfer/sec:\s*", rf"({QUANTITY})", (printed_metric("transfer", "Transfer rate", "bytes/s", "higher"),)
        ),
    ),
    zeros=(*_SOCKET_ERRORS, _STATUS),
)
TEXTS: Final = REPORT.texts()
parse = REPORT.parse

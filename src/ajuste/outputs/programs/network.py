"""Benchmarks of networks and load generators for HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from ajuste.model.metric import Direction
from ajuste.outputs.base import ParseError, excerpt, finite
from ajuste.outputs.format import Parser
from ajuste.outputs.printed import NUMBER, QUANTITY, PrintedReport, PrintedRow, printed_metric

# Source: nghttp2 1.52, src/h2load.cc (main), and util::format_duration and utos_funit.


def _h2load_row(label: str, name: str, title: str, unit: str, direction: Direction) -> PrintedRow:
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


H2LOAD: Final = PrintedReport(
    name="h2load",
    title="h2load",
    reads="h2load of nghttp2, a load generator for HTTP/1, 2 and 3: rates, and times in whatever unit fits each.",
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
        _h2load_row("time for request", "request-time", "Time of a request", "s", "lower"),
        _h2load_row("time for connect", "connect-time", "Time to connect", "s", "lower"),
        _h2load_row("time to 1st byte", "first-byte-time", "Time to the first byte", "s", "lower"),
        _h2load_row(r"req/s", "client-rate", "Requests a second of a client", "1/s", "higher"),
    ),
)


# iperf3, asked for its JSON: what was sent and received over TCP.
#
# Source: iperf3 3.12, iperf_api.c (iperf_json_finish) and iperf_client_api.c.


_US: Final = 1e-6
_MBIT: Final = 1e6


def parse_iperf3(output: str) -> dict[str, float]:
    """Return ``iperf3.received`` and ``.sent`` in Mbit/s, ``.retransmits``, ``.rtt`` in seconds, ``.client-cpu`` and
    ``.server-cpu`` in per cent. Raises ParseError, also for errors that iperf3 reports.
    """
    try:
        document = json.loads(output)
    except (ValueError, RecursionError):
        raise ParseError(f"iperf3 printed no JSON: {excerpt(output)}") from None
    if isinstance(document, dict) and isinstance(document.get("error"), str):
        raise ParseError(f"iperf3 failed: {excerpt(document['error'])}")
    end = _iperf3_table(document, "end")
    sent, received = _iperf3_table(end, "sum_sent"), _iperf3_table(end, "sum_received")
    used = _iperf3_table(end, "cpu_utilization_percent")
    metrics = {
        "iperf3.received": _iperf3_number(received, "bits_per_second") / _MBIT,
        "iperf3.sent": _iperf3_number(sent, "bits_per_second") / _MBIT,
        "iperf3.client-cpu": _iperf3_number(used, "host_total"),
        "iperf3.server-cpu": _iperf3_number(used, "remote_total"),
    }
    if "retransmits" in sent:
        metrics["iperf3.retransmits"] = _iperf3_number(sent, "retransmits")
    streams = end.get("streams")
    senders = [_iperf3_table(stream, "sender") for stream in streams] if isinstance(streams, list) else []
    if senders and all("mean_rtt" in stream for stream in senders):
        metrics["iperf3.rtt"] = _US * sum(_iperf3_number(stream, "mean_rtt") for stream in senders) / len(senders)
    return metrics


def _iperf3_table(document: Any, name: str) -> Mapping[str, Any]:
    table = document.get(name) if isinstance(document, dict) else None
    if not isinstance(table, dict):
        raise ParseError(f'iperf3 printed no complete results: found no table "{name}"')
    return table


def _iperf3_number(table: Mapping[str, Any], name: str) -> float:
    value = table.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParseError(f'iperf3 printed {excerpt(str(value))} as "{name}"; expected a number')
    return finite(value, f'iperf3\'s "{name}"')


# Source: netperf 2.7, src/nettest_omni.c (netperf_output_source). Its latencies are in microseconds.


def _netperf_row(label: str, name: str, title: str, unit: str, direction: Direction, factor: float = 1.0) -> PrintedRow:
    metric = printed_metric(name, title, unit, direction, can_be_0=True)
    return PrintedRow(rf"{label}=", rf"({NUMBER})", (metric,), factor=factor)


def _netperf_latency(label: str, name: str, title: str, direction: Direction = "lower") -> PrintedRow:
    return _netperf_row(f"{label}_LATENCY", name, title, "s", direction, 1e-6)


NETPERF: Final = PrintedReport(
    name="netperf",
    title="netperf",
    reads="netperf with chosen figures as `NAME=VALUE` (test option `-k`): rates and latencies of a test.",
    begins=r"^MIGRATED (?:TCP|UDP|SCTP) .{1,60} TEST ",
    needed=("throughput",),
    main=r"throughput|latency(?:-p\d+)?",
    rows=(
        _netperf_row("THROUGHPUT", "throughput", "Throughput, in the unit of the test", "", "higher"),
        _netperf_row("TRANSACTION_RATE", "transactions-per-second", "Transactions per second", "1/s", "higher"),
        _netperf_row("ELAPSED_TIME", "elapsed", "Duration", "s", "none"),
        _netperf_row("LOCAL_CPU_UTIL", "client-cpu", "CPU used by the client's side", "%", "lower"),
        _netperf_latency("MIN", "latency-min", "Shortest latency"),
        _netperf_latency("MEAN", "latency", "Mean latency"),
        _netperf_latency("P50", "latency-p50", "Median latency"),
        _netperf_latency("P90", "latency-p90", "Latency, 90 % quantile"),
        _netperf_latency("P99", "latency-p99", "Latency, 99 % quantile"),
        _netperf_latency("MAX", "latency-max", "Longest latency"),
        _netperf_latency("STDDEV", "latency-sd", "Spread of the latency", "none"),
    ),
    failed=((r"^(?:netperf|establish control): (.{1,200})", "netperf failed: {}"),),
)


# Source: wrk 4.1, src/wrk.c (print_stats, print_stats_latency, print_units) and src/units.c.


_STATS: Final = rf"({QUANTITY})\s+({QUANTITY})\s+({QUANTITY})\s+({NUMBER})%"
_SOCKET_ERRORS: Final = tuple(
    printed_metric(f"{name}-errors", f"Errors of sockets: {name}", "", "lower", step=1, can_be_0=True)
    for name in ("connect", "read", "write", "timeout")
)
_STATUS: Final = printed_metric(
    "error-responses", "Responses other than 2xx and 3xx", "", "lower", step=1, can_be_0=True
)

WRK: Final = PrintedReport(
    name="wrk",
    title="wrk",
    reads="wrk and wrk2, load generators for HTTP: requests a second, and latencies in whatever unit fits each.",
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


PARSERS: Final[Mapping[str, Parser]] = MappingProxyType(
    {"h2load": H2LOAD.parse, "iperf3": parse_iperf3, "netperf": NETPERF.parse, "wrk": WRK.parse}
)
TEXTS: Final = (
    *H2LOAD.texts(),
    *NETPERF.texts(),
    *WRK.texts(),
)

"""Benchmarks of networks and load generators for HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from ajuste.outputs.base import ParseError, excerpt, finite
from ajuste.outputs.format import Parser
from ajuste_programs.printed import NUMBER, QUANTITY, PrintedReport, PrintedRow, printed_metric

# Source: nghttp2 1.52, src/h2load.cc (main), and util::format_duration and utos_funit.


def _h2load_row(label: str, name: str) -> PrintedRow:
    return PrintedRow(
        rf"{label}\s*:\s+",
        rf"({QUANTITY})\s+({QUANTITY})\s+({QUANTITY})\s+({QUANTITY})\s+({NUMBER})%",
        (f"{name}-min", f"{name}-max", name, f"{name}-sd", f"{name}-within-sd"),
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
            ("duration", "requests-per-second", "transfer"),
        ),
        PrintedRow(
            r"requests: ",
            ", ".join(
                rf"({NUMBER}) {word}"
                for word in ("total", "started", "done", "succeeded", "failed", "errored", "timeout")
            ),
            ("requests", "started", "done", "succeeded", "failed", "errored", "timeouts"),
        ),
        PrintedRow(
            r"status codes: ",
            ", ".join(rf"({NUMBER}) {number}xx" for number in range(2, 6)),
            tuple(f"responses-{number}xx" for number in range(2, 6)),
        ),
        PrintedRow(
            r"traffic: ",
            rf"{QUANTITY} \(({NUMBER})\) total, {QUANTITY} \(({NUMBER})\) headers \(space savings ({NUMBER})%\), "
            rf"{QUANTITY} \(({NUMBER})\) data",
            ("traffic", "header-traffic", "header-savings", "data-traffic"),
        ),
        _h2load_row("time for request", "request-time"),
        _h2load_row("time for connect", "connect-time"),
        _h2load_row("time to 1st byte", "first-byte-time"),
        _h2load_row(r"req/s", "client-rate"),
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


def _netperf_row(label: str, name: str, factor: float = 1.0) -> PrintedRow:
    return PrintedRow(rf"{label}=", rf"({NUMBER})", (name,), factor=factor)


def _netperf_latency(label: str, name: str) -> PrintedRow:
    return _netperf_row(f"{label}_LATENCY", name, 1e-6)


NETPERF: Final = PrintedReport(
    name="netperf",
    title="netperf",
    reads="netperf with chosen figures as `NAME=VALUE` (test option `-k`): rates and latencies of a test.",
    begins=r"^MIGRATED (?:TCP|UDP|SCTP) .{1,60} TEST ",
    needed=("throughput",),
    main=r"throughput|latency(?:-p\d+)?",
    rows=(
        _netperf_row("THROUGHPUT", "throughput"),
        _netperf_row("TRANSACTION_RATE", "transactions-per-second"),
        _netperf_row("ELAPSED_TIME", "elapsed"),
        _netperf_row("LOCAL_CPU_UTIL", "client-cpu"),
        _netperf_latency("MIN", "latency-min"),
        _netperf_latency("MEAN", "latency"),
        _netperf_latency("P50", "latency-p50"),
        _netperf_latency("P90", "latency-p90"),
        _netperf_latency("P99", "latency-p99"),
        _netperf_latency("MAX", "latency-max"),
        _netperf_latency("STDDEV", "latency-sd"),
    ),
    failed=((r"^(?:netperf|establish control): (.{1,200})", "netperf failed: {}"),),
)


# Source: wrk 4.1, src/wrk.c (print_stats, print_stats_latency, print_units) and src/units.c.


_STATS: Final = rf"({QUANTITY})\s+({QUANTITY})\s+({QUANTITY})\s+({NUMBER})%"
_SOCKET_ERRORS: Final = ("connect-errors", "read-errors", "write-errors", "timeout-errors")
_STATUS: Final = "error-responses"

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
            ("latency", "latency-sd", "latency-max", "latency-within-sd"),
        ),
        PrintedRow(
            r"\s+Req/Sec\s+",
            _STATS,
            ("thread-rate", "thread-rate-sd", "thread-rate-max", "thread-rate-within-sd"),
        ),
        PrintedRow(
            rf"\s+(?P<which>{NUMBER})%\s+",
            rf"({QUANTITY})",
            (printed_metric("latency-p{}", "{}th percentile of the latency", "s", "lower"),),
        ),
        PrintedRow(
            rf"\s+(?={NUMBER} requests in)",
            rf"({NUMBER}) requests in ({QUANTITY}), ({QUANTITY}) read",
            ("requests", "duration", "read"),
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
            ("requests-per-second",),
        ),
        PrintedRow(r"Transfer/sec:\s*", rf"({QUANTITY})", ("transfer",)),
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

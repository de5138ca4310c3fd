"""iperf3, asked for its JSON: what was sent and received over TCP.

Source: iperf3 3.12, iperf_api.c (iperf_json_finish) and iperf_client_api.c.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ajuste.outputs.base import ParseError, excerpt, finite

_US: Final = 1e-6
_MBIT: Final = 1e6


def parse(output: str) -> dict[str, float]:
    """``iperf3.received`` and ``.sent`` in Mbit/s, ``.retransmits``, ``.rtt`` in seconds, ``.client-cpu`` and
    ``.server-cpu`` in per cent. Raises ParseError, also for what iperf3 says went wrong.
    """
    try:
        document = json.loads(output)
    except (ValueError, RecursionError):
        raise ParseError(f"iperf3 printed no JSON: {excerpt(output)}") from None
    if isinstance(document, dict) and isinstance(document.get("error"), str):
        raise ParseError(f"iperf3 failed: {excerpt(document['error'])}")
    end = _table(document, "end")
    sent, received = _table(end, "sum_sent"), _table(end, "sum_received")
    used = _table(end, "cpu_utilization_percent")
    found = {
        "iperf3.received": _number(received, "bits_per_second") / _MBIT,
        "iperf3.sent": _number(sent, "bits_per_second") / _MBIT,
        "iperf3.client-cpu": _number(used, "host_total"),
        "iperf3.server-cpu": _number(used, "remote_total"),
    }
    if "retransmits" in sent:
        found["iperf3.retransmits"] = _number(sent, "retransmits")
    streams = end.get("streams")
    senders = [_table(one, "sender") for one in streams] if isinstance(streams, list) else []
    if senders and all("mean_rtt" in one for one in senders):
        found["iperf3.rtt"] = _US * sum(_number(one, "mean_rtt") for one in senders) / len(senders)
    return found


def _table(document: Any, name: str) -> Mapping[str, Any]:
    found = document.get(name) if isinstance(document, dict) else None
    if not isinstance(found, dict):
        raise ParseError(f'iperf3 printed no complete results: found no table "{name}"')
    return found


def _number(table: Mapping[str, Any], name: str) -> float:
    value = table.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParseError(f'iperf3 printed {excerpt(str(value))} as "{name}"; expected a number')
    return finite(value, f'iperf3\'s "{name}"')

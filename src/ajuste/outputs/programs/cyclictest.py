"""Cyclictest of rt-tests, asked for its JSON: how late a thread woke up, as a histogram in whole microseconds."""

from __future__ import annotations

import json
from typing import Any

from ajuste.outputs.base import ParseError, excerpt

_THOUSANDTHS = {"p50": 500, "p99": 990, "p999": 999}
_MOST_US = 10**9


def parse(output: str) -> dict[str, float]:
    """``cyclictest.min``, ``.avg``, ``.max`` and, from the histogram, ``.p50``, ``.p99``, ``.p999``, in microseconds.

    A percentile is the smallest latency that so many wake-ups do not exceed; the longest one where it is beyond the
    histogram's end.
    """
    thread = _thread(output)
    cycles = _count(thread.get("cycles"), output)
    least, longest = _count(thread.get("min"), output), _count(thread.get("max"), output)
    average = thread.get("avg")
    histogram = thread.get("histogram")
    if not isinstance(average, int | float) or not isinstance(histogram, dict) or not cycles or least > longest:
        raise ParseError(f"cyclictest printed no results: {excerpt(output)}")
    buckets = sorted((_latency(key, output), _count(number, output)) for key, number in histogram.items())
    percentiles = {
        f"cyclictest.{name}": _rank(buckets, -(-cycles * p // 1000), longest) for name, p in _THOUSANDTHS.items()
    }
    return {
        "cyclictest.min": float(least),
        "cyclictest.avg": float(average),
        "cyclictest.max": float(longest),
        **percentiles,
    }


def _thread(output: str) -> dict[str, Any]:
    _, brace, rest = f"\n{output}".partition("\n{")  # before it are words on what was tuned
    try:
        document = json.loads("{" + rest if brace else "")
    except (ValueError, RecursionError) as error:
        raise ParseError(f"cyclictest printed no JSON: {excerpt(output)}") from error
    threads = document.get("thread") if isinstance(document, dict) else None
    if not isinstance(threads, dict) or len(threads) != 1 or not isinstance(threads.get("0"), dict):
        raise ParseError(f"cyclictest printed results of several threads; expected one: {excerpt(output)}")
    return dict(threads["0"])


def _count(value: object, output: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_US:
        raise ParseError(f"cyclictest printed {str(value)[:40]!r} as a figure: {excerpt(output)}")
    return value


def _latency(key: str, output: str) -> int:
    if not key.isascii() or not key.isdigit() or len(key) > 9:
        raise ParseError(f"cyclictest printed {key[:40]!r} as a latency: {excerpt(output)}")
    return int(key)


def _rank(buckets: list[tuple[int, int]], rank: int, longest: int) -> float:
    for latency, number in buckets:
        rank -= number
        if rank <= 0:
            return float(latency)
    return float(longest)

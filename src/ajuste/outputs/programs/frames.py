"""The bundled frames: one line ``frames profile=… due=N drawn=N in_time=N elapsed_ns=… … p50_ns=… max_ns=…``."""

from __future__ import annotations

import re

from ajuste.outputs.base import ParseError, excerpt, figure

_LINE = re.compile(
    r"^frames profile=[a-z]{1,20} due=(\d{1,12}) drawn=(\d{1,12}) in_time=(\d{1,12}) elapsed_ns=(\d{1,18}) "
    r"min_ns=\d{1,18} p50_ns=(\d{1,18}) p90_ns=\d{1,18} p99_ns=(\d{1,18}) p999_ns=(\d{1,18}) max_ns=(\d{1,18})$",
    re.MULTILINE,
)
_TIMES = ("p50", "p99", "p999", "max")


def parse(output: str) -> dict[str, float]:
    """``frames.rate`` a second, ``frames.missed`` in percent of those that were due, and the times from when a frame
    was due to when it was ready, in milliseconds: ``frames.p50``, ``.p99``, ``.p999`` and ``.max``.
    """
    found = _LINE.findall(output)
    if len(found) != 1:
        raise ParseError(f"frames printed {len(found)} lines of results , expected one: {excerpt(output)}")
    due, drawn, in_time, elapsed, *times = (figure(text, "frames") for text in found[0])
    if not in_time <= drawn <= due or not due or not elapsed:
        raise ParseError(f"frames printed figures that contradict each other: {excerpt(output)}")
    return {
        "frames.rate": drawn / (elapsed / 1e9),
        "frames.missed": 100 * (due - in_time) / due,
        **{f"frames.{name}": time / 1e6 for name, time in zip(_TIMES, times, strict=True)},
    }

"""The bundled jitter: one line ``jitter sleeps=N … p50_ns=… max_ns=…``."""

from __future__ import annotations

import re

from ajuste.outputs.base import ParseError, excerpt, figure

_LINE = re.compile(
    r"^jitter sleeps=\d{1,12} interval_us=\d{1,12} min_ns=(\d{1,18}) p50_ns=(\d{1,18}) p90_ns=(\d{1,18}) "
    r"p99_ns=(\d{1,18}) p999_ns=(\d{1,18}) max_ns=(\d{1,18})$",
    re.MULTILINE,
)
_NAMES = ("min", "p50", "p90", "p99", "p999", "max")


def parse(output: str) -> dict[str, float]:
    """``jitter.min``, ``.p50``, ``.p90``, ``.p99``, ``.p999`` and ``.max``: how late sleeps ended, in microseconds."""
    found = _LINE.findall(output)
    if len(found) != 1:
        raise ParseError(f"jitter printed {len(found)} lines of results instead of one: {excerpt(output)}")
    return {
        f"jitter.{name}": figure(value, f"jitter.{name}") / 1000 for name, value in zip(_NAMES, found[0], strict=True)
    }

"""``json:FILE#/POINTER``: a log of JSON lines that is followed; the pointer's value (RFC 6901) in each is an event.

The figure is the mean of the events, or with ``@p99`` after the file a quantile.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Final

from ajuste.model.error import RequestError
from ajuste.model.metric import split_percentile
from ajuste_live.reading import Figures, FollowedLog, Source, mean_of_values, quantile_of_values

KIND: Final = "json"


def open_source(where: str) -> Source:
    """Open the file before the ``#`` with the pointer after it. Raises RequestError."""
    name, _, pointer = where.partition("#")
    file, quantile = split_percentile(name)
    if not pointer.startswith("/"):
        raise RequestError("the pointer is missing; expected FILE#/POINTER", hint=f"write {file}#/request/seconds")
    keys = [key.replace("~1", "/").replace("~0", "~") for key in pointer[1:].split("/")]
    log = FollowedLog(Path(file))
    fold = mean_of_values if quantile is None else quantile_of_values(quantile)

    def events(lines: list[str]) -> Figures:
        return tuple(value for line in lines if (value := _value(line, keys)) is not None)

    warning = "" if events(log.tail()) else f"no line at the end of {file} has a number at {pointer} yet"
    return Source(file, lambda: events(log.lines()), fold, log.close, warning=warning)


def _value(line: str, keys: list[str]) -> float | None:
    try:
        part: Any = json.loads(line)
        for key in keys:
            part = part[int(key)] if isinstance(part, list) else part[key]
        value = float(part)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None
    return value if math.isfinite(value) else None

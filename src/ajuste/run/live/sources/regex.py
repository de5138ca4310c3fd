"""``regex:FILE#PATTERN``: a log that is followed; the first group of each line that matches is one event.

The figure is the mean of the events, or with ``@p99`` after the file a quantile: ``regex:/var/log/x.log@p99#PATTERN``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ajuste.model.error import RequestError
from ajuste.model.metric import split_percentile
from ajuste.run.live.reading import FollowedLog, Shown, Source, mean_of_values, quantile_of_values

KIND: Final = "regex"

_LONGEST: Final = 2000
"""Characters of a line that are looked at."""


def open_source(where: str) -> Source:
    """The file before the ``#``, the pattern after it. Raises RequestError."""
    name, hash_, text = where.partition("#")
    file, quantile = split_percentile(name)
    if not hash_ or not text:
        raise RequestError("the pattern is missing; expected FILE#PATTERN", hint=f"write {file}#took ([0-9.]+) s")
    try:
        pattern = re.compile(text)
    except re.error as failure:
        raise RequestError(
            f"{text!r} is not a regular expression: {failure}; expected one with the number in parentheses"
        ) from None
    if not pattern.groups:
        raise RequestError(f"{text!r} has no group; expected the number in parentheses")
    log = FollowedLog(Path(file))
    fold = mean_of_values if quantile is None else quantile_of_values(quantile)
    return Source(file, lambda: _events(log, pattern), fold, log.close)


def _events(log: FollowedLog, pattern: re.Pattern[str]) -> Shown:
    found = (pattern.search(line[:_LONGEST]) for line in log.lines())
    return tuple(value for match in found if match and (value := _number(match[1])) is not None)


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None

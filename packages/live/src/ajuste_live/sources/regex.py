"""``regex:FILE#PATTERN``: a log that is followed; the first group of each line that matches is one event.

The figure is the mean of the events, or with ``@p99`` after the file a quantile: ``regex:/var/log/x.log@p99#PATTERN``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ajuste.model.error import RequestError
from ajuste.model.metric import split_percentile
from ajuste.outputs.base import ParseError
from ajuste.outputs.pattern import check_pattern, first_groups
from ajuste_live.reading import (
    PAST_SECONDS,
    READ_SECONDS,
    Figures,
    FollowedLog,
    NothingShownError,
    Source,
    mean_of_values,
    quantile_of_values,
)

KIND: Final = "regex"


def open_source(where: str) -> Source:
    """Open the file before the ``#`` with the pattern after it. Raises RequestError."""
    name, hash_, text = where.partition("#")
    file, quantile = split_percentile(name)
    if not hash_ or not text:
        raise RequestError("the pattern is missing; expected FILE#PATTERN", hint=f"write {file}#took ([0-9.]+) s")
    check_pattern(text)
    log = FollowedLog(Path(file))
    fold = mean_of_values if quantile is None else quantile_of_values(quantile)
    return Source(file, lambda: _events(log.lines(), text), fold, log.close, warning=_warning(log, file, text))


def _warning(log: FollowedLog, file: str, pattern: str) -> str:
    # This also starts the process that searches, which takes time that a reading does not have.
    try:
        return "" if _events(log.tail(), pattern, PAST_SECONDS / 2) else f"no line at the end of {file} matches yet"
    except NothingShownError as nothing:
        return str(nothing)


def _events(lines: list[str], pattern: str, limit_s: float = READ_SECONDS) -> Figures:
    # The search runs in another process with a time limit: lines of the log may make the pattern slow.
    try:
        matches = first_groups(lines, pattern, limit_s) if lines else []
    except ParseError:
        raise NothingShownError(
            f"searching took more than {limit_s:g} s: the machine is busy, or the pattern may backtrack too much"
        ) from None
    return tuple(value for text in matches if (value := _number(text)) is not None)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

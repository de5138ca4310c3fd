"""The separated lines of ``perf stat -x``: an event a line, with ``-r N`` the spread of N runs.

Source: perf-stat(1), "CSV FORMAT": value, unit, event, with -r the variance (the relative standard error of the mean,
as ``0.53%``), run time of the counter, per cent of the time that it ran, and a derived figure with its unit.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import Table
from ajuste.outputs.collector import Collector
from ajuste.outputs.perf import FORMAT, NotCounted, add_event
from ajuste.outputs.perf_text import number

_FIRST: Final = re.compile(
    r"^(?:[0-9][0-9.,]{0,30}|<not (?:counted|supported)>)(?P<separator>[^\w.<> ])"
    r"[\w%/]{0,20}(?P=separator)[A-Za-z][\w./:=@-]{0,100}(?P=separator)"
)
_NUMBER: Final = re.compile(r"^[0-9][0-9.,]{0,30}$")
_FEWEST_FIELDS: Final = 5
_LONGEST_LINE: Final = 4096


def recognise(text: str) -> bool:
    """Whether a text is of this kind."""
    return _separator(text) is not None


def read(text: str, name: str, file: Path, runs: int | None) -> Table:
    """``runs`` is the N of ``-r N``, which perf does not print here."""
    found = Collector(FORMAT, file)
    separator = _separator(text) or ","
    skipped = NotCounted(file)
    for line_number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        place = Place(file, line_number)
        fields = line[:_LONGEST_LINE].split(separator)
        if len(fields) < _FEWEST_FIELDS:
            raise RequestError(
                f"found {len(fields)} fields; expected at least {_FEWEST_FIELDS}, as perf stat -x writes", place=place
            )
        value, unit, event, spread = (field.strip() for field in fields[:4])
        if value.startswith("<not"):
            skipped.add(event)
            continue
        if unit[:1].isdigit() or not event:
            raise RequestError(
                "expected a value, its unit and an event",
                place=place,
                hint="use -x';' without -I and -A: timestamps, CPUs and decimal commas are not supported",
            )
        percent = spread.removesuffix("%") if spread.endswith("%") else None
        add_event(
            found,
            name,
            event,
            unit,
            _figure(value, place),
            spread_percent=None if percent is None else _figure(percent, place),
            runs=runs,
            line=line_number,
        )
    return skipped.noted(found).table()


def _figure(text: str, place: Place) -> float:
    if not _NUMBER.match(text):
        raise RequestError(f"{text[:40]!r} is not a number; expected a number", place=place)
    return number(text, "," in text, place)


def _separator(text: str) -> str | None:
    """The character between the fields, if the first line that is no comment looks like one of perf's."""
    line = next((line for line in text[:65536].splitlines() if line.strip() and not line.startswith("#")), "")
    found = _FIRST.match(line[:_LONGEST_LINE])
    return found["separator"] if found else None

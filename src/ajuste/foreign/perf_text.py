"""The text of ``perf stat``, also of ``-r N``, in whatever way the locale writes numbers.

Source: perf-stat(1) and tools/perf/util/stat-display.c; the printf flag ' (thousands' grouping) follows the locale.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ajuste.foreign.perf import FORMAT, add_event
from ajuste.foreign.table import Collector, Table
from ajuste.model.error import Place, RequestError

_HEAD: Final = re.compile(r"Performance counter stats for (?P<what>.{1,4000}?)(?: \((?P<runs>\d{1,9}) runs\))?:\s*$")
_NUMBER: Final = r"[0-9](?:[0-9.,'\u00a0\u202f\u2009 ]{0,30}[0-9])?"
_EVENT: Final = re.compile(
    rf"^\s*(?P<value>{_NUMBER})\s+(?:(?P<unit>msec|usec|sec|ns|Joules|MiB)\s+)?(?P<event>[\w./:,=@-]{{1,100}})"
)
_ELAPSED: Final = re.compile(
    rf"^\s*(?P<value>{_NUMBER})\s+(?:\+-\s+{_NUMBER}\s+)?seconds (?P<what>time elapsed|user|sys)\b"
)
_SPREAD: Final = re.compile(rf"\(\s*\+-\s*(?P<percent>{_NUMBER})\s*%\s*\)\s*$")
_NOT_COUNTED: Final = re.compile(r"^\s*<not (counted|supported)>")
_NAMES: Final = {"time elapsed": "time-elapsed", "user": "user-time", "sys": "system-time"}
_LONGEST_LINE: Final = 4096


def recognise(text: str) -> bool:
    """Whether a text is of this kind."""
    return "Performance counter stats for" in text


def read(text: str, name: str, file: Path, runs: int | None) -> Table:
    """Each block of the text is one value of each event, or with ``-r N`` a summary of N runs (``runs``, if given,
    is believed rather than what perf printed)."""
    found = Collector(FORMAT, file)
    lines = text.splitlines()
    comma = _decimal_comma(lines)
    counted: int | None = None
    for number, line in enumerate(lines, start=1):
        if head := _HEAD.search(line[:_LONGEST_LINE]):
            counted = int(head["runs"]) if head["runs"] else None
        elif not _NOT_COUNTED.match(line):
            for event, unit, value, spread in _figures(line[:_LONGEST_LINE], comma, Place(file, number)):
                add_event(found, name, event, unit, value, spread_percent=spread, runs=runs or counted, line=number)
    return found.table()


def _figures(line: str, comma: bool, place: Place) -> Iterator[tuple[str, str, float, float | None]]:
    spread = _SPREAD.search(line)
    percent = number(spread["percent"], comma, place) if spread else None
    if elapsed := _ELAPSED.match(line):
        yield _NAMES[elapsed["what"]], "seconds", number(elapsed["value"], comma, place), percent
    elif event := _EVENT.match(line):
        yield event["event"], event["unit"] or "", number(event["value"], comma, place), percent


def _decimal_comma(lines: list[str]) -> bool:
    """Whether the decimal sign is a comma: times and percentages always have decimals, so their last sign is it."""
    for line in lines:
        found = _ELAPSED.match(line[:_LONGEST_LINE]) or _SPREAD.search(line[:_LONGEST_LINE])
        if found:
            text = found["value"] if "value" in found.re.groupindex else found["percent"]
            signs = [sign for sign in text if sign in ".,"]
            if signs:
                return signs[-1] == ","
    return False


def number(text: str, comma: bool, place: Place) -> float:
    """The number that a locale wrote. Raises RequestError for what is none."""
    plain = re.sub(r"['\u00a0\u202f\u2009 ]", "", text)
    plain = plain.replace(".", "").replace(",", ".") if comma else plain.replace(",", "")
    try:
        return float(plain)
    except ValueError:
        raise RequestError(f"{text!r} is no number", place=place) from None

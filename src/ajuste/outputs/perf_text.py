"""The text of ``perf stat``, also of ``-r N``, in whatever way the locale writes numbers.

Source: perf-stat(1) and tools/perf/util/stat-display.c; the printf flag ' (thousands' grouping) follows the locale.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import Table
from ajuste.outputs.collector import Collector
from ajuste.outputs.perf import FORMAT, NotCounted, add_event

_HEAD: Final = re.compile(r"Performance counter stats for (?P<what>.{1,4000}?)(?: \((?P<runs>\d{1,9}) runs\))?:\s*$")
_NUMBER: Final = r"[0-9](?:[0-9.,'\u00a0\u202f\u2009 ]{0,30}[0-9])?"
_EVENT: Final = re.compile(
    rf"^\s*(?P<value>{_NUMBER})\s+(?:(?P<unit>msec|usec|sec|ns|Joules|MiB)\s+)?(?P<event>[\w./:,=@-]{{1,100}})"
)
_ELAPSED: Final = re.compile(
    rf"^\s*(?P<value>{_NUMBER})\s+(?:\+-\s+{_NUMBER}\s+)?seconds (?P<what>time elapsed|user|sys)\b"
)
_SPREAD: Final = re.compile(rf"\(\s*\+-\s*(?P<percent>{_NUMBER})\s*%\s*\)\s*$")
_NOT_COUNTED: Final = re.compile(r"^\s*<not (?:counted|supported)>\s+(?:msec\s+)?(?P<event>[\w./:,=@-]{1,100})")
_PART: Final = re.compile(r"^(?:CPU\d+|S\d+(?:-D\d+)?(?:-C\d+)?|N\d+|\S{1,40}-\d+)\s+\d[\d.,]*\s+(?:msec\s+)?[\w-]")
_NAMES: Final = {"time elapsed": "time-elapsed", "user": "user-time", "sys": "system-time"}
_INTERVALS: Final = re.compile(r"^#\s+time\s+counts\s+unit\s+events", re.MULTILINE)
_LONGEST_LINE: Final = 4096


def recognise(text: str) -> bool:
    """Whether a text is of this kind."""
    return "Performance counter stats for" in text or _INTERVALS.search(text[:65536]) is not None


def read(text: str, name: str, file: Path, runs: int | None) -> Table:
    """Each block of the text is one value of each event, or with ``-r N`` a summary of N runs (``runs``, if given,
    is believed rather than what perf printed)."""
    if _INTERVALS.search(text):
        raise RequestError(
            "perf stat -I is not supported: intervals of a run are not repetitions",
            place=Place(file),
            hint="use perf stat -r N",
        )
    found = Collector(FORMAT, file)
    skipped = NotCounted(file)
    lines = text.splitlines()
    comma = _decimal_comma(lines)
    counted: int | None = None
    inside = False
    for number, line in enumerate((line[:_LONGEST_LINE] for line in lines), start=1):
        if head := _HEAD.search(line):
            counted, inside = int(head["runs"]) if head["runs"] else None, True
        elif not inside:
            continue
        elif missing := _NOT_COUNTED.match(line):
            skipped.add(missing["event"])
        elif _PART.match(line):
            raise RequestError(
                "perf stat -A and --per-... are not supported: parts of a run are not repetitions",
                place=Place(file, number),
            )
        elif figure := _figure(line, comma, Place(file, number), counted):
            add_event(
                found,
                name,
                figure.event,
                figure.unit,
                figure.value,
                spread_percent=figure.spread,
                runs=runs or counted,
                line=number,
                step=figure.step,
            )
    return skipped.noted(found).table()


@dataclass(frozen=True)
class _Figure:
    event: str
    unit: str
    value: float
    spread: float | None
    step: float


def _figure(line: str, comma: bool, place: Place, runs: int | None) -> _Figure | None:
    spread = _SPREAD.search(line)
    percent = number(spread["percent"], comma, place) if spread else None
    if percent is None and runs is not None:
        percent = 0.0  # perf prints none where all runs were alike
    found = _ELAPSED.match(line)
    if found:
        event, unit = _NAMES[found["what"]], "seconds"
    elif found := _EVENT.match(line):
        event, unit = found["event"], found["unit"] or ""
    else:
        return None
    decimals = len(found["value"].rpartition("," if comma else ".")[2]) if _has_decimals(found["value"], comma) else 0
    return _Figure(event, unit, number(found["value"], comma, place), percent, 10.0**-decimals)


def _has_decimals(text: str, comma: bool) -> bool:
    return ("," if comma else ".") in text


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
        raise RequestError(f"{text!r} is not a number; expected a number", place=place) from None

"""Amounts whose unit changes within an output, such as ``840us``, ``12.3 ms`` and ``1.2s``, as figures of one metric.

What is printed is converted to the metric's own unit. A number without a unit is already in it, as ever. A metric's
unit is a time, an amount of data, or else the name of what is counted; after a slash is what it is counted by. Which
spellings each of them has is in docs/reference/study-files.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from ajuste.outputs.base import ParseError, excerpt, figure, finite

_SPELLED: Final = {
    Fraction(1, 10**9): ("ns", "nsec", "nsecs"),
    Fraction(1, 10**6): ("us", "usec", "usecs", "µs", "μs"),
    Fraction(1, 10**3): ("ms", "msec", "msecs"),
    Fraction(1): ("s", "sec", "secs", "second", "seconds"),
    Fraction(60): ("min", "mins", "minute", "minutes"),
    Fraction(3600): ("h", "hr", "hrs", "hour", "hours"),
}
_TIMES: Final = {name: size for size, names in _SPELLED.items() for name in names}
_MINUTES: Final = {"m": Fraction(60)}
"""Only where the metric is a time: as a metric's own unit it could be anything."""

_BINARY: Final = {f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTP", 1)}
_DECIMAL: Final = {letter: Fraction(1000**power) for power, letter in enumerate("KMGTP", 1)} | {"k": Fraction(1000)}
_PREFIXES: Final = {"": Fraction(1)} | _DECIMAL | _BINARY
_DATA: Final = {
    f"{prefix}{name}": size * part
    for names, part in ((("B", "byte", "bytes"), Fraction(1)), (("b", "bit", "bits"), Fraction(1, 8)))
    for name in names
    for prefix, size in _PREFIXES.items()
}
_BARE: Final = _BINARY | {name[0]: size for name, size in _BINARY.items()} | {"k": Fraction(1024)}
"""Of data without a letter for what they are of: as programs for people mean it (``ls -h``, fio)."""

_NUMBER: Final = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_AMOUNT: Final = re.compile(rf"\s*([+-]?{_NUMBER}(?:[eE][+-]?[0-9]{{1,3}})?)\s*(.*?)\s*", re.DOTALL)
_PART: Final = re.compile(rf"\s*({_NUMBER})\s*([a-zµμ]+)")
_PER_SECOND: Final = re.compile(r"(.*)(b|B)ps")

LONGEST: Final = 100
"""Characters of an amount."""


@dataclass(frozen=True)
class Unit:
    """``size`` in seconds or bytes, of a count 1 with its ``name``; ``per`` is seconds or a name, if there is any."""

    kind: Literal["time", "data", "count"]
    size: Fraction
    name: str
    per: Fraction | str | None


def unit_of(text: str) -> Unit:
    """Return the unit of a metric."""
    head, per = _split(text)
    if head in _TIMES:
        return Unit("time", _TIMES[head], head, per)
    if head in _DATA:
        return Unit("data", _DATA[head], head, per)
    return Unit("count", Fraction(1), "" if head == "1" else head, per)


def _split(text: str) -> tuple[str, Fraction | str | None]:
    head, slash, tail = text.partition("/")
    if slash:
        return head.strip(), _TIMES.get(tail.strip(), tail.strip())
    if match := _PER_SECOND.fullmatch(text):
        return match[1] + match[2], Fraction(1)
    return text.strip(), None


def amount(text: str, unit: str, what: str) -> float:
    """Return the figure that ``text`` is, in ``unit``. Raises ParseError that names ``what`` it should be."""
    match = _AMOUNT.fullmatch(text) if len(text) <= LONGEST else None
    if match is None or not match[2] or match[2] == unit:
        return figure(text if match is None else match[1], what)
    metric_unit = unit_of(unit)
    if (seconds := _parts(text, metric_unit)) is not None:
        return finite(seconds, what)
    # How many of the metric's unit the printed one is; None where they have nothing in common.
    head, per = _split(match[2])
    size = _size(head, metric_unit)
    ratio = None if size is None else _by(size / metric_unit.size, per, metric_unit)
    if ratio is None:
        wanted, hint = (f"an amount in {unit}", "") if unit else ("a number", _HINT)
        raise ParseError(f"{excerpt(text)} is not {wanted} for {what}{hint}")
    return finite(_times(figure(match[1], what), ratio), what)


_HINT: Final = "; name the metric's unit, such as ms, to convert printed units to it"


def _times(value: float, ratio: Fraction) -> float:
    # Rounded once where the ratio is whole or a part of one: 840 µs are exactly 0.84 ms.
    return value * ratio.numerator / ratio.denominator


def _size(head: str, metric_unit: Unit) -> Fraction | None:
    if metric_unit.kind == "time":
        return (_TIMES | _MINUTES).get(head)
    if metric_unit.kind == "data":
        return (_DATA | _BARE).get(head)
    known = {prefix: size for prefix, size in _PREFIXES.items() if head in (prefix, prefix + metric_unit.name)}
    known |= {prefix: size for prefix, size in _PREFIXES.items() if head == f"{prefix} {metric_unit.name}"}
    return min(known.values(), default=None)


def _by(ratio: Fraction, per: Fraction | str | None, metric_unit: Unit) -> Fraction | None:
    if isinstance(per, Fraction) and isinstance(metric_unit.per, Fraction):
        return ratio * metric_unit.per / per
    if per == metric_unit.per:
        return ratio
    # ``1.5K`` of operations per second, and ``12 ms`` of ms/op, need not say it again; ``3 MiB`` is no speed.
    said_elsewhere = metric_unit.kind == "count" or isinstance(metric_unit.per, str)
    return ratio if per is None and said_elsewhere else None


def _parts(text: str, metric_unit: Unit) -> float | None:
    # `1m30.5s` in the metric's unit, from the largest part to the smallest; `None` for what is not like it.
    if metric_unit.kind != "time" or metric_unit.per is not None:
        return None
    end, total, before, count = 0, 0.0, None, 0
    while match := _PART.match(text, end):
        size = (_TIMES | _MINUTES).get(match[2])
        if size is None or (before is not None and size >= before):
            return None
        total += _times(float(match[1]), size / metric_unit.size)
        end, before, count = match.end(), size, count + 1
    return total if count > 1 and not text[end:].strip() else None

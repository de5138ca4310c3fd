"""Quantities: a number with the unit that a person gave it, in the unit that a tunable counts in."""

from __future__ import annotations

import re
from fractions import Fraction

_QUANTITY = re.compile(r"([+-]?[0-9]{1,20}(?:\.[0-9]{1,18})?)\s*([^\s0-9.+-]\S{0,15})?", re.ASCII)

_TIMES = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "centisecs": Fraction(1, 100),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
}
_SIZES = {
    **{f"{letter}iB": Fraction(1024**power) for power, letter in enumerate("KMGT", start=1)},
    **{letter: Fraction(1024**power) for power, letter in enumerate("KMGT", start=1)},
    **{f"{letter}B": Fraction(1000**power) for power, letter in enumerate("kMGT", start=1)},
    "B": Fraction(1),
    "bytes": Fraction(1),
    "k": Fraction(1024),
}
"""A letter alone is a power of 1024, as the kernel's own command line and cgroup files read it (lib/cmdline.c)."""

_FREQUENCIES = {"Hz": Fraction(1), "kHz": Fraction(10**3), "MHz": Fraction(10**6), "GHz": Fraction(10**9)}
_RATES = {f"{unit}/s": size for unit, size in _SIZES.items()}
_COUNTS = {"k": Fraction(10**3), "M": Fraction(10**6)}
"""Of what is counted and has no unit that could be divided."""

_COUNTED = frozenset({"", "packets", "pages", "requests", "sectors", "epochs"})
_DIMENSIONS = (_TIMES, _SIZES, _RATES, _FREQUENCIES)


class WrongStep(ValueError):
    """The quantity lies between two values that the tunable can have."""


def whole_number(text: str, unit: str) -> int | None:
    """How many ``unit`` the quantity ``text`` is (``64MiB``, ``1.5ms``, ``20%``); a bare number is in ``unit``.

    ``None`` for what is no number, or has a unit that does not fit. Raises WrongStep for what is no whole number of
    ``unit``.
    """
    match = _QUANTITY.fullmatch(text)
    if not match:
        return None
    factor = _factor(match[2], unit)
    if factor is None:
        return None
    number = Fraction(match[1]) * factor
    if number.denominator == 1:
        return int(number)
    if match[2] is None:
        return None
    raise WrongStep


def real_number(text: str, unit: str) -> float | None:
    """As ``whole_number``, but any number will do."""
    match = _QUANTITY.fullmatch(text)
    factor = _factor(match[2], unit) if match else None
    return float(Fraction(match[1]) * factor) if match and factor is not None else None


def unit_of(text: str) -> str:
    """The unit that a quantity was given; empty for a bare number, and for what is none."""
    match = _QUANTITY.fullmatch(text)
    return (match[2] or "") if match else ""


def step(unit: str) -> str:
    """One ``unit`` in words: ``10 ms`` for centisecs."""
    return "10 ms" if unit == "centisecs" else f"1 {unit}"


def _factor(given: str | None, unit: str) -> Fraction | None:
    if given is None or given == unit:
        return Fraction(1)
    for dimension in _DIMENSIONS:
        if unit in dimension and given in dimension:
            return dimension[given] / dimension[unit]
    return _COUNTS.get(given) if unit in _COUNTED else None

"""Figures in outputs."""

from __future__ import annotations

import math

from ajuste.parse.failure import ParseError, excerpt


def figure(text: str, what: str) -> float:
    """The finite number that ``text`` is. Raises ParseError that names ``what`` it should be."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ParseError(f"{excerpt(text)} is no number for {what}")
    return value


def finite(value: float, what: str) -> float:
    """``value`` as a finite number. Raises ParseError that names ``what`` it should be."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ParseError(f"{excerpt(str(value))} is no finite number for {what}")
    return number

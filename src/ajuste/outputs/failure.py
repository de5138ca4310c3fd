"""What a parser raises when an output is not what its program prints."""

from __future__ import annotations

import math

from ajuste.model.error import RunError


class ParseError(RunError):
    """The output was not understood; the message says what was expected and what was found."""


def excerpt(text: str, limit: int = 80) -> str:
    """The beginning of an output in quotes, for messages."""
    line = text.strip().split("\n", 1)[0]
    return f'"{line}"' if len(line) <= limit else f'"{line[:limit]}…"'


# Figures in outputs.


def figure(text: str, what: str) -> float:
    """The finite number that ``text`` is. Raises ParseError that names ``what`` it should be."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ParseError(f"{excerpt(text)} is not a number for {what}")
    return value


def finite(value: float, what: str) -> float:
    """``value`` as a finite number. Raises ParseError that names ``what`` it should be."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ParseError(f"{excerpt(str(value))} is not a finite number for {what}")
    return number

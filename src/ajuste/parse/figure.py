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

"""Levels over a range: evenly spaced whole numbers, by differences or by ratios, exact where that can be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

from ajuste.model.span import Scale

TIDY: Final = 20
"""A level that is no whole number anyway is moved by less than the distance to its neighbour divided by so many."""


def spaced(low: int, high: int, points: int, scale: Scale) -> tuple[int, ...]:
    """``points`` levels from ``low`` to ``high``, each once: fewer where the range has no more whole numbers.

    Both ends are exact, and so is every level that comes out whole. Of the others those are taken that are said
    shortly: 1 ms … 30 ms in 7 steps by ratios has 3.1 ms, not 3.107232506 ms. Raises ValueError for what is no range.
    """
    if low >= high or points < 2:
        raise ValueError(f"{points} points from {low} to {high}")
    if scale == "log" and low <= 0:
        raise ValueError(f"ratios from {low} to {high}")
    ideal = _by_ratios(low, high, points) if scale == "log" else _by_differences(low, high, points)
    gaps = [b - a for a, b in pairwise(ideal)]
    inner = [_tidy(value, min(pair)) for value, pair in zip(ideal[1:-1], pairwise(gaps), strict=True)]
    return tuple(sorted({low, high, *(min(max(value, low), high) for value in inner)}))


def stepped(low: int, high: int, step: int) -> tuple[int, ...]:
    """``low``, ``low + step``, … up to ``high``. Raises ValueError for a step that does not lead there."""
    if low >= high or step <= 0 or step > high - low:
        raise ValueError(f"steps of {step} from {low} to {high}")
    return tuple(range(low, high + 1, step))


def _by_differences(low: int, high: int, points: int) -> Sequence[Fraction]:
    return [low + Fraction((high - low) * place, points - 1) for place in range(points)]


def _by_ratios(low: int, high: int, points: int) -> Sequence[Fraction]:
    return [_root(Fraction(high, low), place, points - 1) * low for place in range(points)]


def _root(ratio: Fraction, power: int, root: int) -> Fraction:
    """``ratio`` to the power of ``power / root``, exact where that is a whole number."""
    value = math.exp(math.log(ratio) * power / root)
    whole = Fraction(round(value))
    return whole if whole**root == ratio**power else Fraction(value)


def _tidy(value: Fraction, gap: Fraction) -> int:
    """A whole number near ``value`` with few digits; ``value`` itself if it is one."""
    if value.denominator == 1:
        return int(value)
    room = gap / TIDY
    unit = 10 ** math.floor(math.log10(room)) if room >= 1 else 1
    return round(value / unit) * unit

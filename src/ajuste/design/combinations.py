"""Combinations of levels that are tried."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import count, pairwise, product
from typing import Final, Literal

from ajuste.model.trial import Factor
from ajuste.model.tunable import Scale
from ajuste_stats.subsets import Subset, subsets


def subset_name(subset: Subset, names: Sequence[str]) -> str:
    """Return a subset's name for people."""
    if not subset:
        return "nothing of it"
    if len(subset) == len(names):
        return "the whole"
    if len(subset) > len(names) / 2:
        return f"all but {', '.join(name for place, name in enumerate(names) if place not in subset)}"
    return f"only {', '.join(name for place, name in enumerate(names) if place in subset)}"


Combine = Literal["all", "one-at-a-time", "screening", "ablation"]


def combinations(factors: Sequence[Factor], combine: Combine) -> list[tuple[str, ...]]:
    """Return the levels of each configuration, in the factors' order: of no factors one, the empty one.

    ``all``: every combination (the full factorial), the last factor changing fastest. ``one-at-a-time``: the baseline,
    then every other level of each factor with all others at their baseline. ``screening``: the baseline, then the
    others of a screening design of the factors that vary, which all have two levels or all have three. ``ablation``:
    the baseline, then all that an ablation tries of the factors that vary, which have two levels each.
    """
    if combine == "all":
        return list(product(*(factor.levels for factor in factors)))
    if combine == "screening":
        return _screening(factors)
    if combine == "ablation":
        return _ablation(factors)
    baseline = tuple(factor.baseline for factor in factors)
    return [
        baseline,
        *(
            (*baseline[:place], level, *baseline[place + 1 :])
            for place, factor in enumerate(factors)
            for level in factor.levels
            if level != factor.baseline
        ),
    ]


def combination_count(factors: Sequence[Factor], combine: Combine) -> int:
    """Return the number of combinations, without making them (but for screening and ablation, which have few)."""
    if combine in ("screening", "ablation"):
        return len(combinations(factors, combine))
    if combine == "one-at-a-time":
        return 1 + sum(len(factor.levels) - 1 for factor in factors)
    number = 1
    for factor in factors:
        number *= len(factor.levels)
    return number


def low_and_high(factor: Factor) -> tuple[str, str]:
    """Return the levels that screening compares: of two the baseline and the other, of three the outer ones."""
    if len(factor.levels) == 3:
        return factor.levels[0], factor.levels[2]
    return factor.baseline, next(level for level in factor.levels if level != factor.baseline)


def _screening(factors: Sequence[Factor]) -> list[tuple[str, ...]]:
    varied = [factor for factor in factors if len(factor.levels) > 1]
    rows = []
    for row in signs(len(varied), len(varied[0].levels)):
        chosen = {}
        for factor, sign in zip(varied, row, strict=True):
            low, high = low_and_high(factor)
            chosen[factor.name] = factor.baseline if sign == 0 else high if sign > 0 else low
        rows.append(tuple(chosen.get(factor.name, factor.baseline) for factor in factors))
    return rows


def _ablation(factors: Sequence[Factor]) -> list[tuple[str, ...]]:
    lines = [factor.name for factor in factors if len(factor.levels) > 1]
    return [
        tuple(
            low_and_high(factor)[lines.index(factor.name) in chosen] if len(factor.levels) > 1 else factor.baseline
            for factor in factors
        )
        for chosen in subsets(len(lines))
    ]


# Levels over a range: evenly spaced whole numbers, by differences or by ratios, exact where that can be.


TIDY: Final = 20
"""A level that is no whole number anyway is moved by less than the distance to its neighbour divided by so many."""


def spaced(low: int, high: int, points: int, scale: Scale) -> tuple[int, ...]:
    """Return ``points`` levels from ``low`` to ``high``, fewer where the range has no more whole numbers.

    Both ends are exact, and so is every level that comes out whole. Other levels are rounded to few digits: 1 ms … 30
    ms in 7 steps by ratios has 3.1 ms, not 3.107232506 ms. Raises ValueError for an invalid range.
    """
    if low >= high or points < 2:
        raise ValueError(f"{points} points from {low} to {high}")
    if scale == "log" and low <= 0:
        raise ValueError(f"ratios from {low} to {high}")
    ideal = (
        [_root(Fraction(high, low), place, points - 1) * low for place in range(points)]
        if scale == "log"
        else [low + Fraction((high - low) * place, points - 1) for place in range(points)]
    )
    gaps = [b - a for a, b in pairwise(ideal)]
    inner = [_tidy(value, min(pair)) for value, pair in zip(ideal[1:-1], pairwise(gaps), strict=True)]
    return tuple(sorted({low, high, *(min(max(value, low), high) for value in inner)}))


def stepped(low: int, high: int, step: int) -> tuple[int, ...]:
    """Return ``low``, ``low + step``, … up to ``high``. Raises ValueError for a step that does not lead there."""
    if low >= high or step <= 0 or step > high - low:
        raise ValueError(f"steps of {step} from {low} to {high}")
    return tuple(range(low, high + 1, step))


def _root(ratio: Fraction, power: int, root: int) -> Fraction:
    # `ratio` to the power of `power / root`, exact where that is a whole number.
    value = math.exp(math.log(ratio) * power / root)
    whole = Fraction(round(value))
    return whole if whole**root == ratio**power else Fraction(value)


def _tidy(value: Fraction, gap: Fraction) -> int:
    # A whole number near `value` with few digits; `value` itself if it is one.
    if value.denominator == 1:
        return int(value)
    room = gap / TIDY
    unit = 10 ** math.floor(math.log10(room)) if room >= 1 else 1
    return round(value / unit) * unit


# Screening: which of many factors matter, from few combinations of their levels.


FEWEST: Final = {2: 5, 3: 4}
"""Fewest factors of a screening design by the number of levels: with fewer, all combinations are hardly more than a
screening design.
"""


def signs(factors: int, levels: int) -> list[tuple[int, ...]]:
    """Return a screening design: for each configuration the level of each factor, -1 low, 0 middle, 1 high.

    The baseline is first, all low of two levels and all middle of three. Of two levels the design of Plackett and
    Burman (1946, "The design of optimum multifactorial experiments", Biometrika 33) with its fold-over, the same with
    all levels exchanged (Box and Wilson 1951, "On the experimental attainment of optimum conditions", Journal of the
    Royal Statistical Society B 13). Of three a definitive screening design (Jones and Nachtsheim 2011, Journal of
    Quality Technology 43). In both, no main effect is correlated with another one or with an interaction of two
    factors.
    """
    if levels == 3:
        from pydoe import definitive_screening_design  # takes long to load, and only screening needs it

        return sorted(_rows(definitive_screening_design(factors)), key=any)
    half = _plackett_burman(factors)
    rows = [*half, *(tuple(-sign for sign in row) for row in half)]
    return sorted(rows, key=lambda row: any(sign > 0 for sign in row))


def _plackett_burman(factors: int) -> list[tuple[int, ...]]:
    # The smallest design that there is for so many factors: not every multiple of four is known to the library.
    from pydoe import pbdesign  # takes long to load, and only screening needs it

    for columns in count(factors):
        try:
            return [row[:factors] for row in _rows(pbdesign(columns))]
        except ValueError:
            continue
    raise AssertionError("there is a Hadamard matrix for every power of two")


def _rows(matrix: object) -> list[tuple[int, ...]]:
    return [tuple(int(sign) for sign in row) for row in matrix]  # type: ignore[attr-defined]

"""Which combinations of levels are tried."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Literal

from ajuste.design.ablation import subsets
from ajuste.design.screening import signs
from ajuste.model.configuration import Factor

Combine = Literal["all", "one-at-a-time", "screening", "ablation"]


def combinations(factors: Sequence[Factor], combine: Combine) -> list[tuple[str, ...]]:
    """The levels of each configuration, in the factors' order: of no factors one, the empty one.

    ``all``: every combination (the full factorial), the last factor changing fastest. ``one-at-a-time``: the baseline,
    then every other level of each factor with all others at their baseline. ``screening``: the baseline, then the
    others of a screening design (see ``design.screening``) of the factors that vary, which all have two levels or all
    have three. ``ablation``: the baseline, then all that an ablation (see ``design.ablation``) tries of the factors
    that vary, which have two levels each.
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


def count(factors: Sequence[Factor], combine: Combine) -> int:
    """How many there are, without making them (but for screening and ablation, of which there are few)."""
    if combine in ("screening", "ablation"):
        return len(combinations(factors, combine))
    if combine == "one-at-a-time":
        return 1 + sum(len(factor.levels) - 1 for factor in factors)
    number = 1
    for factor in factors:
        number *= len(factor.levels)
    return number


def low_and_high(factor: Factor) -> tuple[str, str]:
    """The levels between which screening compares: of two the baseline and the other, of three the outer ones."""
    if len(factor.levels) == 3:
        return factor.levels[0], factor.levels[2]
    return factor.baseline, next(level for level in factor.levels if level != factor.baseline)


def _screening(factors: Sequence[Factor]) -> list[tuple[str, ...]]:
    varied = [factor for factor in factors if len(factor.levels) > 1]
    found = []
    for row in signs(len(varied), len(varied[0].levels)):
        chosen = {factor.name: _level(factor, sign) for factor, sign in zip(varied, row, strict=True)}
        found.append(tuple(chosen.get(factor.name, factor.baseline) for factor in factors))
    return found


def _ablation(factors: Sequence[Factor]) -> list[tuple[str, ...]]:
    lines = [factor.name for factor in factors if len(factor.levels) > 1]
    return [
        tuple(
            low_and_high(factor)[lines.index(factor.name) in chosen] if len(factor.levels) > 1 else factor.baseline
            for factor in factors
        )
        for chosen in subsets(len(lines))
    ]


def _level(factor: Factor, sign: int) -> str:
    low, high = low_and_high(factor)
    return factor.baseline if sign == 0 else high if sign > 0 else low

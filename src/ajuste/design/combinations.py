"""Which combinations of levels are tried."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Literal

from ajuste.model.configuration import Factor

Combine = Literal["all", "one-at-a-time"]


def combinations(factors: Sequence[Factor], combine: Combine) -> list[tuple[str, ...]]:
    """The levels of each configuration, in the factors' order: of no factors one, the empty one.

    ``all``: every combination (the full factorial), the last factor changing fastest. ``one-at-a-time``: the baseline,
    then every other level of each factor with all others at their baseline.
    """
    if combine == "all":
        return list(product(*(factor.levels for factor in factors)))
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
    """How many there are, without making them."""
    if combine == "one-at-a-time":
        return 1 + sum(len(factor.levels) - 1 for factor in factors)
    number = 1
    for factor in factors:
        number *= len(factor.levels)
    return number

"""Contrasts: main effects and interactions of factors as weighted sums over the configurations of a block.

Those of Box, Hunter and Hunter (2005, "Statistics for Experimenters", chapter 5); with marginal means for factors of
more than two levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ajuste.design.combinations import low_and_high
from ajuste.model.configuration import Configuration, Factor


@dataclass(frozen=True)
class Contrast:
    """``weights`` has one figure for each configuration; they add up to 0. The rest as in ``FactorEffect``."""

    kind: Literal["main", "interaction"]
    factors: tuple[str, ...]
    levels: tuple[str, ...]
    against: tuple[str, ...]
    weights: NDArray[np.float64]


MOST_INTERACTIONS: Final = 200
"""With more of them than this only main effects are computed: corrected for so many, little could be said of any."""

Weights: TypeAlias = NDArray[np.float64]


class Cells:
    """The means over configurations with given levels, as weights."""

    def __init__(self, factors: Sequence[Factor], configurations: Sequence[Configuration]) -> None:
        self._have = {
            (factor.name, level): np.array([c.levels[factor.name] == level for c in configurations])
            for factor in factors
            for level in factor.levels
        }

    def mean(self, *levels: tuple[str, str]) -> Weights:
        """The weights of the mean over all configurations with these levels, each with its factor."""
        chosen = np.all([self._have[each] for each in levels], axis=0).astype(np.float64)
        weights: Weights = chosen / np.sum(chosen)
        return weights


def varied(factors: Sequence[Factor]) -> list[Factor]:
    """Those with more than one level."""
    return [factor for factor in factors if len(factor.levels) > 1]


def interacting(factors: Sequence[Factor]) -> list[tuple[Factor, Factor]]:
    """The pairs of factors whose interactions are computed: all, or none if there are too many."""
    found = list(combinations(varied(factors), 2))
    many = sum((len(one.levels) - 1) * (len(two.levels) - 1) for one, two in found)
    return found if many <= MOST_INTERACTIONS else []


def factorial_contrasts(factors: Sequence[Factor], configurations: Sequence[Configuration]) -> tuple[Contrast, ...]:
    """Of all combinations: every other level of each factor against its baseline, and the interactions of two."""
    cells = Cells(factors, configurations)
    mains = [_main(factor, factor.baseline, level, cells) for factor in varied(factors) for level in _others(factor)]
    return (*mains, *(each for one, two in interacting(factors) for each in _interactions(one, two, cells)))


def screening_contrasts(factors: Sequence[Factor], configurations: Sequence[Configuration]) -> tuple[Contrast, ...]:
    """Of a screening design: the main effect of each factor that varies."""
    cells = Cells(factors, configurations)
    return tuple(_main(factor, *low_and_high(factor), cells) for factor in varied(factors))


def _others(factor: Factor) -> list[str]:
    return [level for level in factor.levels if level != factor.baseline]


def _main(factor: Factor, low: str, high: str, cells: Cells) -> Contrast:
    weights = cells.mean((factor.name, high)) - cells.mean((factor.name, low))
    return Contrast("main", (factor.name,), (high,), (low,), weights)


def _interactions(one: Factor, two: Factor, cells: Cells) -> Iterator[Contrast]:
    def at(first: str, second: str) -> Weights:
        return cells.mean((one.name, first), (two.name, second))

    for first in _others(one):
        for second in _others(two):
            step_there = at(first, second) - at(one.baseline, second)
            step_here = at(first, two.baseline) - at(one.baseline, two.baseline)
            names, against = (one.name, two.name), (one.baseline, two.baseline)
            yield Contrast("interaction", names, (first, second), against, step_there - step_here)

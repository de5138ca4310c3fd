"""Which parts of a whole are tried together to find out which of them matter.

A block holds the baseline (no line), the whole, each line alone and each left out. Of few lines it holds every other
combination too, and the lines' Shapley values are computed exactly. Of more it goes the way from nothing to the whole
in an order of the lines and in the reverse of that order: what each adds on the way, averaged over both ways, is its
Shapley value exactly as long as no three lines interact, and over many orders in any case.

Sources: Shapley (1953), "A value for n-person games"; Castro, Gómez and Tejada (2009), "Polynomial calculation of the
Shapley value based on sampling"; Mitchell et al. (2022), "Sampling permutations for Shapley value estimation", JMLR 23
(section 3, antithetic sampling).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import Final, TypeAlias

from ajuste.design.blocks import raw_bits

Subset: TypeAlias = frozenset[int]
"""The lines that are set, by their places."""

MOST_EXACT: Final = 5
"""Up to so many lines a block holds every combination: 32, where the two ways and the single lines are 20."""

ORDERS: Final = 20
"""So many orders take turns. They are the same for each number of lines, like a table in a book."""


def is_exact(lines: int) -> bool:
    """Whether blocks hold every combination."""
    return lines <= MOST_EXACT


@cache
def orders(lines: int) -> tuple[tuple[int, ...], ...]:
    """The orders in which ``lines`` are added, drawn at random once and for ever."""
    found = []
    for number in range(ORDERS):
        keys = raw_bits((lines, number), lines)
        found.append(tuple(sorted(range(lines), key=keys.__getitem__)))
    return tuple(found)


def order_of(lines: int, block: int) -> tuple[int, ...]:
    """The order of a block."""
    return orders(lines)[block % ORDERS]


def way(order: Sequence[int]) -> tuple[Subset, ...]:
    """From nothing to the whole, a line more with each."""
    return tuple(frozenset(order[:length]) for length in range(len(order) + 1))


def principal(lines: int) -> tuple[Subset, ...]:
    """Nothing, the whole, each line alone, the whole without each."""
    every = frozenset(range(lines))
    alone = [frozenset({line}) for line in range(lines)]
    return tuple(dict.fromkeys((frozenset(), every, *alone, *(every - one for one in alone))))


@cache
def of_block(lines: int, block: int) -> tuple[Subset, ...]:
    """What a block holds, each once."""
    if is_exact(lines):
        return subsets(lines)
    order = order_of(lines, block)
    return tuple(dict.fromkeys((*principal(lines), *way(order), *way(order[::-1]))))


@cache
def subsets(lines: int) -> tuple[Subset, ...]:
    """What any block holds: the principal ones first."""
    if is_exact(lines):
        every = (frozenset(some) for size in range(lines + 1) for some in combinations(range(lines), size))
        return tuple(dict.fromkeys((*principal(lines), *every)))
    ways = (one for order in orders(lines) for one in (*way(order), *way(order[::-1])))
    return tuple(dict.fromkeys((*principal(lines), *ways)))


def name_of(subset: Subset, names: Sequence[str]) -> str:
    """What a person calls it."""
    if not subset:
        return "nothing of it"
    if len(subset) == len(names):
        return "the whole"
    if len(subset) > len(names) / 2:
        return f"all but {', '.join(name for place, name in enumerate(names) if place not in subset)}"
    return f"only {', '.join(name for place, name in enumerate(names) if place in subset)}"

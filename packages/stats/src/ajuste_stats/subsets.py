"""Subsets of the parts of a whole that are tried to find out which of the parts matter (see ``shapley``)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Final, TypeAlias

from ajuste_stats.orders import raw_bits

Subset: TypeAlias = frozenset[int]
"""The parts that are set, by their places."""

MOST_EXACT: Final = 5
"""Up to so many parts a block holds every combination: 32, where the two ways and the single parts are 20."""

ORDERS: Final = 20
"""Number of orders that take turns. They are the same for each number of parts, like a table in a book."""


def is_exact(parts: int) -> bool:
    """Return whether blocks hold every combination."""
    return parts <= MOST_EXACT


@cache
def orders(parts: int) -> tuple[tuple[int, ...], ...]:
    """Return the orders in which ``parts`` are added, drawn at random once and for ever."""
    all_orders = []
    for number in range(ORDERS):
        keys = raw_bits((parts, number), parts)
        all_orders.append(tuple(sorted(range(parts), key=keys.__getitem__)))
    return tuple(all_orders)


def block_order(parts: int, block: int) -> tuple[int, ...]:
    """Return the order of a block."""
    return orders(parts)[block % ORDERS]


def way(order: Sequence[int]) -> tuple[Subset, ...]:
    """Return the sets from nothing to the whole, a part more with each."""
    return tuple(frozenset(order[:length]) for length in range(len(order) + 1))


def principal(parts: int) -> tuple[Subset, ...]:
    """Return nothing, the whole, each part alone, the whole without each."""
    every = frozenset(range(parts))
    alone = [frozenset({part}) for part in range(parts)]
    return tuple(dict.fromkeys((frozenset(), every, *alone, *(every - part for part in alone))))


@cache
def of_block(parts: int, block: int) -> tuple[Subset, ...]:
    """Return what a block holds, each once."""
    if is_exact(parts):
        return subsets(parts)
    order = block_order(parts, block)
    return tuple(dict.fromkeys((*principal(parts), *way(order), *way(order[::-1]))))


@cache
def subsets(parts: int) -> tuple[Subset, ...]:
    """Return the subsets that any block holds: the principal ones first."""
    if is_exact(parts):
        every = (frozenset(some) for size in range(parts + 1) for some in itertools.combinations(range(parts), size))
        return tuple(dict.fromkeys((*principal(parts), *every)))
    ways = (subset for order in orders(parts) for subset in (*way(order), *way(order[::-1])))
    return tuple(dict.fromkeys((*principal(parts), *ways)))

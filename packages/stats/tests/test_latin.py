from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste_stats.orders import latin_order

FIRST = ["0321", "3102", "1230", "2013"]
"""Written down once: a change here makes old digests worthless."""


def orders(size: int, blocks: int, seed: int = 7) -> list[list[str]]:
    names = [f"c{number}" for number in range(size)]
    return [latin_order(place, names, (seed, 0)) for place in range(blocks)]


@given(st.integers(1, 12), st.integers(0, 2**53))
def test_over_as_many_blocks_as_configurations_each_stands_once_at_each_place(size: int, seed: int) -> None:
    several = orders(size, 4 * size, seed)
    for begin in range(0, 4 * size, size):
        for position in range(size):
            assert len({order[position] for order in several[begin : begin + size]}) == size


@pytest.mark.parametrize(("size", "squares"), [(2, 1), (3, 2), (4, 1), (5, 2), (6, 1), (7, 2), (10, 1)])
def test_each_configuration_follows_each_other_one_equally_often(size: int, squares: int) -> None:
    follows = Counter(pair for order in orders(size, squares * size) for pair in pairwise(order))
    assert len(follows) == size * (size - 1)
    assert set(follows.values()) == {squares}


def test_every_configuration_is_equally_often_first_in_the_first_block_of_a_square() -> None:
    first = Counter(orders(4, 1, seed)[0][0] for seed in range(2000))
    assert all(abs(count - 500) < 4 * 19.4 for count in first.values())  # 4 standard deviations of a binomial count
    assert len(first) == 4


def test_squares_differ_and_an_order_is_the_same_for_ever() -> None:
    several = orders(4, 400)
    assert len({tuple(map(tuple, several[begin : begin + 4])) for begin in range(0, 400, 4)}) > 40
    assert ["".join(name[1] for name in order) for order in several[:4]] == FIRST

"""Orders of switchbacks, and wash-outs: what randomness must be like for verdicts to hold."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ajuste_stats.switchback.design import order_of_block, slices_a_block
from ajuste_stats.terms import SwitchbackOrder

ORDERS: tuple[SwitchbackOrder, ...] = ("random", "mirrored", "latin")


Orders = st.sampled_from(ORDERS)


@given(st.integers(2, 6), st.integers(0, 1000), st.integers(0, 2**63), Orders)
@settings(max_examples=60, deadline=None)
def test_every_block_has_each_configuration_equally_often(
    size: int, number: int, seed: int, order: SwitchbackOrder
) -> None:
    names = [f"c{place}" for place in range(size)]
    drawn = order_of_block(number, names, seed, order)
    assert len(drawn) == slices_a_block(size, order)
    assert set(Counter(drawn).values()) == {len(drawn) // size}
    assert drawn == order_of_block(number, names, seed, order)


@given(st.integers(2, 6), st.integers(0, 2**63))
@settings(max_examples=30, deadline=None)
def test_a_steady_drift_hits_all_configurations_of_a_mirrored_block_alike(size: int, seed: int) -> None:
    drawn = order_of_block(0, [str(place) for place in range(size)], seed, "mirrored")
    places = {name: sum(at for at, other in enumerate(drawn) if other == name) for name in set(drawn)}
    assert len(set(places.values())) == 1


@given(st.integers(2, 7), st.integers(0, 2**63))
@settings(max_examples=30, deadline=None)
def test_each_configuration_follows_every_other_equally_often_within_the_rows_of_a_latin_block(
    size: int, seed: int
) -> None:
    drawn = order_of_block(0, [str(place) for place in range(size)], seed, "latin")
    rows = [drawn[at : at + size] for at in range(0, len(drawn), size)]
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert len(follows) == size * (size - 1)
    assert len(set(follows.values())) == 1
    for place in range(size):
        assert len(set(Counter(row[place] for row in rows).values())) == 1


@pytest.mark.parametrize("order", ["random", "mirrored"])
def test_exchanging_two_configurations_gives_an_order_that_is_as_likely(order: SwitchbackOrder) -> None:
    drawn = Counter(order_of_block(number, ["a", "b", "c"], 7, order) for number in range(1_200))
    first = Counter(sequence.index("a") < sequence.index("b") for sequence in (*drawn.elements(),))
    assert abs(first[True] / first.total() - 0.5) < 0.06
    assert len(drawn) == 6
    exchange = str.maketrans("ab", "ba")
    for sequence, count in drawn.items():
        other = tuple(name.translate(exchange) for name in sequence)
        assert abs(count - drawn[other]) < 5 * (count + drawn[other]) ** 0.5


def test_exchanging_two_configurations_gives_a_latin_block_that_is_as_likely() -> None:
    drawn = Counter(order_of_block(number, ["a", "b"], 7, "latin") for number in range(400))
    assert set(drawn) == {tuple("abba"), tuple("baab")}
    assert abs(drawn[tuple("abba")] - 200) < 60


def test_signs_of_neighbouring_blocks_are_independent() -> None:
    signs = np.array([1 if order_of_block(number, ["a", "b"], 3)[0] == "a" else -1 for number in range(4_000)])
    for lag in (1, 2, 3):
        assert abs(float(np.mean(signs[lag:] * signs[:-lag]))) < 4 / 4_000**0.5


@pytest.mark.parametrize(
    ("number", "names", "seed"), [(-1, ["a", "b"], 0), (0, ["a", "b"], -1), (0, ["a", "a"], 0), (0, ["a"], 0)]
)
def test_what_cannot_be_ordered_is_refused(number: int, names: list[str], seed: int) -> None:
    with pytest.raises(ValueError, match=r"expected|negative"):
        order_of_block(number, names, seed)


def test_each_configuration_of_a_block_of_stays_remains_for_all_its_slices_in_either_order() -> None:
    drawn = [order_of_block(number, ["a", "b"], 7, stay=3) for number in range(400)]
    assert set(drawn) == {tuple("aaabbb"), tuple("bbbaaa")}
    assert 160 <= drawn.count(tuple("aaabbb")) <= 240
    assert drawn[5] == order_of_block(5, ["a", "b"], 7, stay=3)
    with pytest.raises(ValueError, match="has no stays"):
        order_of_block(0, ["a", "b"], 7, "latin", stay=3)

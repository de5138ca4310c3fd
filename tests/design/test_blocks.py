from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ajuste.design.blocks import block

NAMES = ("a", "b", "c", "d")
ORDERS = ["bdca", "cbad", "cbad", "abdc"]
SEED = 4610079356560476


@given(st.integers(0, 10_000), st.integers(0, 2**63 - 1), st.sets(st.text(min_size=1), min_size=1, max_size=12))
def test_every_block_has_every_configuration_once(number: int, seed: int, names: set[str]) -> None:
    slots = block(number, sorted(names), seed)
    assert sorted(s.configuration for s in slots) == sorted(names)
    assert [s.position for s in slots] == list(range(len(names)))
    assert {s.block for s in slots} == {number}
    assert len({s.seed for s in slots}) == 1
    assert 0 <= slots[0].seed < 2**53
    assert slots == block(number, sorted(names), seed)


def test_the_order_is_fixed_for_ever() -> None:
    """Written down once from PCG64's published stream: a change here makes old digests worthless."""
    orders = ["".join(s.configuration for s in block(number, NAMES, 1)) for number in range(4)]
    assert orders == ORDERS
    assert block(0, NAMES, 1)[0].seed == SEED


def test_all_orders_are_equally_frequent() -> None:
    orders = Counter("".join(s.configuration for s in block(n, NAMES, 42)) for n in range(4800))
    assert len(orders) == 24
    assert stats.chisquare(list(orders.values())).pvalue > 0.001


def test_blocks_and_studies_have_seeds_of_their_own() -> None:
    seeds = {block(number, NAMES, seed)[0].seed for number in range(50) for seed in range(50)}
    assert len(seeds) == 2500


def test_the_first_blocks_are_marked_as_warm_up() -> None:
    assert [block(n, NAMES, 1, warm_up=2)[0].warm_up for n in range(4)] == [True, True, False, False]
    assert block(0, NAMES, 1, warm_up=2)[0].seed == block(0, NAMES, 1)[0].seed


def test_impossible_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        block(-1, NAMES, 1)
    with pytest.raises(ValueError, match="same name"):
        block(0, ("a", "a"), 1)

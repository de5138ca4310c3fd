"""Blocks of an ablation, and what they hold."""

from __future__ import annotations

import pytest

from ajuste_stats.subsets import MOST_EXACT, ORDERS, block_order, of_block, principal, subsets, way

MANY = 14


@pytest.mark.parametrize("lines", range(1, MOST_EXACT + 1))
def test_few_lines_are_tried_in_every_combination_in_each_block(lines: int) -> None:
    assert len(set(subsets(lines))) == len(subsets(lines)) == 2**lines
    assert of_block(lines, 7) == subsets(lines)


def test_of_many_lines_a_block_has_each_alone_and_left_out_and_the_way_in_an_order_and_back() -> None:
    every = frozenset(range(MANY))
    for block in range(3):
        held = of_block(MANY, block)
        assert len(held) == len(set(held)) <= 2 + 2 * MANY + 2 * (MANY - 1)
        assert set(principal(MANY)) <= set(held)
        assert all(frozenset({line}) in held and every - {line} in held for line in range(MANY))
        order = block_order(MANY, block)
        assert sorted(order) == list(range(MANY))
        assert set(way(order)) | set(way(order[::-1])) <= set(held)


def test_orders_differ_take_turns_and_never_change() -> None:
    drawn = [block_order(MANY, block) for block in range(ORDERS)]
    assert len(set(drawn)) == ORDERS
    assert block_order(MANY, ORDERS + 3) == drawn[3]
    assert block_order(6, 0) == (1, 2, 3, 0, 5, 4), "a run that was stored goes on with the same orders"


def test_the_study_knows_everything_that_any_block_holds() -> None:
    known = subsets(MANY)
    assert known[:2] == (frozenset(), frozenset(range(MANY)))
    assert len(known) == len(set(known))
    assert all(set(of_block(MANY, block)) <= set(known) for block in range(2 * ORDERS))

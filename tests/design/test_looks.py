from __future__ import annotations

from itertools import islice, pairwise

import pytest

from ajuste.design.stopping import look_from, looks, review_from, reviews


def test_there_is_a_look_after_every_block_at_first_and_then_whenever_there_are_a_twentieth_more() -> None:
    first = list(islice(looks(), 100))
    assert first[:40] == list(range(1, 41))
    assert all(1 <= later - earlier <= 0.05 * earlier + 1 for earlier, later in pairwise(first))


@pytest.mark.parametrize("min_blocks", [1, 5, 43])
def test_reviews_are_looks_a_tenth_apart(min_blocks: int) -> None:
    review_blocks = list(islice(reviews(min_blocks), 30))
    assert set(review_blocks) <= set(islice(looks(), 300))
    assert review_blocks[0] >= min_blocks
    assert all(later - earlier <= 0.16 * earlier + 1 for earlier, later in pairwise(review_blocks))
    assert [review_from(number, min_blocks) for number in review_blocks] == review_blocks


def test_the_first_look_at_a_number_or_later() -> None:
    assert [look_from(number) for number in (0, 1, 40, 41, 42, 43)] == [1, 1, 40, 42, 42, 45]

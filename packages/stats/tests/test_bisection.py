"""Searching along a line of candidates, by simulated tests whose answer is known."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from ajuste_stats.bisection import Outcome, confidence_of_each, culprits, next_candidate, steps_needed

Oracle = Callable[[int], Outcome]


def search(count: int, oracle: Oracle) -> tuple[tuple[int, ...], list[int]]:
    """Return what is found, and what was tested for it."""
    outcomes: dict[int, Outcome] = {0: "absent", count - 1: "there"}
    tested = []
    while (place := next_candidate(count, outcomes)) is not None:
        outcomes[place] = oracle(place)
        tested.append(place)
    return culprits(count, outcomes), tested


def step_at(first: int, *untold: int) -> Oracle:
    return lambda place: "unusable" if place in untold else "there" if place >= first else "absent"


@pytest.mark.parametrize("count", [2, 3, 4, 7, 64, 100])
def test_the_first_with_the_difference_is_found_wherever_it_is(count: int) -> None:
    for first in range(1, count):
        culprits, tested = search(count, step_at(first))
        assert culprits == (first,)
        assert len(tested) <= steps_needed(count)
        assert len(set(tested)) == len(tested)


def test_neighbours_that_cannot_be_told_stay_suspects() -> None:
    culprits, _ = search(8, step_at(4, 3, 4))
    assert culprits == (3, 4, 5)


def test_what_cannot_be_told_elsewhere_does_no_harm() -> None:
    culprits, _ = search(16, step_at(3, 8, 9, 12))
    assert culprits == (3,)


def test_where_nothing_can_be_told_all_are_suspects() -> None:
    culprits, tested = search(6, lambda _: "undecided")
    assert culprits == (1, 2, 3, 4, 5)
    assert sorted(tested) == [1, 2, 3, 4]


def test_noise_misleads_no_oftener_than_the_confidence_allows() -> None:
    # Each test is wrong as often as its own level of confidence allows; 4,000 searches among 33 candidates.
    count, confidence, searches = 33, 0.9, 4000
    each = 1 - confidence_of_each(confidence, steps_needed(count))
    draw = random.Random(1)

    def noisy(first: int) -> Oracle:
        def test(place: int) -> Outcome:
            right = place >= first
            return "there" if right != (draw.random() < each) else "absent"

        return test

    wrong = sum(search(count, noisy(first := draw.randrange(1, count)))[0] != (first,) for _ in range(searches))
    allowed = 1 - confidence
    assert wrong / searches <= allowed + 3 * math.sqrt(allowed * confidence / searches)
    assert wrong > 0


def test_single_tests_without_correction_would_mislead_oftener() -> None:
    count, draw, searches = 33, random.Random(2), 2000

    def naive(first: int) -> Oracle:
        return lambda place: "there" if (place >= first) != (draw.random() < 0.1) else "absent"

    wrong = sum(search(count, naive(first := draw.randrange(1, count)))[0] != (first,) for _ in range(searches))
    assert wrong / searches > 0.3

"""Delta debugging, by tests whose answer is known."""

from __future__ import annotations

import random

import pytest

from ajuste_stats.bisection import Outcome
from ajuste_stats.delta_debugging import Changes, Test, minimal_changes

CHANGES = tuple("abcdefgh")


def needs(*wanted: str) -> Test:
    return lambda part: "there" if set(wanted) <= set(part) else "absent"


def counted(test: Test) -> tuple[Test, list[Changes]]:
    tested: list[Changes] = []

    def asking(part: Changes) -> Outcome:
        tested.append(part)
        return test(part)

    return asking, tested


@pytest.mark.parametrize("wanted", [("a",), ("e",), ("h",), ("a", "h"), ("b", "c", "g"), CHANGES])
def test_exactly_what_is_needed_is_found(wanted: Changes) -> None:
    assert minimal_changes(CHANGES, needs(*wanted)) == wanted


def test_a_single_change_is_found_in_few_tests() -> None:
    many = tuple(f"OPTION_{number}" for number in range(64))
    test, tested = counted(needs("OPTION_37"))
    assert minimal_changes(many, test) == ("OPTION_37",)
    assert len(tested) <= 12


def test_no_set_is_tested_twice() -> None:
    test, tested = counted(needs("b", "g"))
    minimal_changes(CHANGES, test)
    assert len({frozenset(part) for part in tested}) == len(tested)


def test_one_change_needs_no_test() -> None:
    test, tested = counted(needs("a"))
    assert (minimal_changes(("a",), test), tested) == (("a",), [])


def test_of_alternatives_one_is_found() -> None:
    assert minimal_changes(CHANGES, lambda part: "there" if {"c", "f"} & set(part) else "absent") in (("c",), ("f",))


def test_parts_that_cannot_be_built_are_gone_round() -> None:
    # As in the paper: c needs f to be built at all, and c is to blame.
    def test(part: Changes) -> Outcome:
        if "c" in part and "f" not in part:
            return "unusable"
        return "there" if "c" in part else "absent"

    assert minimal_changes(CHANGES, test) == ("c", "f")


def test_where_nothing_can_be_told_nothing_is_left_out() -> None:
    assert minimal_changes(CHANGES, lambda _: "undecided") == CHANGES


def test_of_what_is_found_none_can_be_left_out_whatever_cannot_be_told() -> None:
    draw = random.Random(1)
    for _ in range(200):
        wanted = set(draw.sample(CHANGES, draw.randrange(1, 5)))
        untold = {frozenset(draw.sample(CHANGES, draw.randrange(1, 8))) for _ in range(20)}

        def test(part: Changes, wanted: set[str] = wanted, untold: set[frozenset[str]] = untold) -> Outcome:
            if frozenset(part) in untold:
                return "unusable"
            return "there" if wanted <= set(part) else "absent"

        minimal = minimal_changes(CHANGES, test)
        assert wanted <= set(minimal)
        for change in minimal:
            assert len(minimal) == 1 or test(tuple(other for other in minimal if other != change)) != "there"

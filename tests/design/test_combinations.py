from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ajuste.design.combinations import Combine, combination_count, combinations
from ajuste.model.trial import Factor

FACTORS = [Factor(name="a", levels=("1", "2", "3"), baseline="2"), Factor(name="b", levels=("x", "y"), baseline="x")]


def test_all_is_every_combination_with_the_last_factor_changing_fastest() -> None:
    assert combinations(FACTORS, "all") == [
        ("1", "x"),
        ("1", "y"),
        ("2", "x"),
        ("2", "y"),
        ("3", "x"),
        ("3", "y"),
    ]


def test_one_at_a_time_varies_each_factor_from_the_baseline() -> None:
    assert combinations(FACTORS, "one-at-a-time") == [("2", "x"), ("1", "x"), ("3", "x"), ("2", "y")]


def test_no_factor_is_one_configuration() -> None:
    assert combinations([], "all") == combinations([], "one-at-a-time") == [()]


@given(st.lists(st.integers(1, 4), max_size=4), st.sampled_from(["all", "one-at-a-time"]))
def test_they_are_counted_rightly_and_each_is_there_once(sizes: list[int], combine: Combine) -> None:
    factors = [
        Factor(name=f"f{place}", levels=tuple(map(str, range(size))), baseline=str(size - 1))
        for place, size in enumerate(sizes)
    ]
    rows = combinations(factors, combine)
    assert len(rows) == len(set(rows)) == combination_count(factors, combine)
    assert tuple(factor.baseline for factor in factors) in rows

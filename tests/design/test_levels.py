"""Levels over a range: whole numbers, both ends, evenly spaced."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.design.combinations import spaced, stepped

MS = 1_000_000


@pytest.mark.parametrize(
    ("low", "high", "points", "scale", "levels"),
    [
        (1, 5, 5, "linear", (1, 2, 3, 4, 5)),
        (1, 16, 5, "log", (1, 2, 4, 8, 16)),
        (1024, 65536, 4, "log", (1024, 4096, 16384, 65536)),
        (MS, 30 * MS, 6, "linear", (1 * MS, 6_800_000, 12_600_000, 18_400_000, 24_200_000, 30 * MS)),
        (-20, 19, 2, "linear", (-20, 19)),
        (1, 3, 100, "linear", (1, 2, 3)),
        (1, 4, 50, "log", (1, 2, 3, 4)),
        (MS, 30 * MS, 4, "log", (MS, 3_100_000, 9_700_000, 30 * MS)),
    ],
)
def test_evenly_spaced_whole_numbers_of_few_digits(low: Any, high: Any, points: Any, scale: Any, levels: Any) -> None:
    assert spaced(low, high, points, scale) == levels


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**9), st.integers(2, 60))
def test_differences_are_equal_but_for_the_tidying(low: Any, length: int, points: Any) -> None:
    levels = spaced(low, low + length, points, "linear")
    assert levels[0] == low
    assert levels[-1] == low + length
    gap = length / (points - 1)
    assert all(0 < b - a <= 1.05 * gap + 1 for a, b in pairwise(levels))


@given(st.integers(1, 10**6), st.integers(2, 10**4), st.integers(2, 20))
def test_ratios_are_equal_but_for_the_tidying(low: Any, ratio: Any, points: Any) -> None:
    levels = spaced(low * 1000, low * ratio * 1000, points, "log")
    each = ratio ** (1 / (points - 1))
    for a, b in pairwise(levels):
        assert (b / a - 1) == pytest.approx(each - 1, rel=0.2, abs=0.002)


def test_steps_go_on_to_the_last_that_fits() -> None:
    assert stepped(1, 30, 4) == (1, 5, 9, 13, 17, 21, 25, 29)


@pytest.mark.parametrize("wrong", [(5, 5, 3, "linear"), (6, 5, 3, "linear"), (1, 5, 1, "linear"), (0, 5, 3, "log")])
def test_what_is_no_range_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="from"):
        spaced(*wrong)

"""Limits: proved to be exceeded only where the whole interval lies beyond."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste_stats.confidence_sequences import Interval
from ajuste_stats.decision import limit_word
from ajuste_stats.effects import Effect
from ajuste_stats.terms import Measure

TIME = Measure(unit="s", direction="lower", resolution=1e-9)


RATE = replace(TIME, direction="higher")


COUNT = replace(TIME, scale="difference", resolution=1.0)


def ratio(low: float, high: float) -> Effect:
    """An effect whose interval is from ``low`` to ``high``."""
    ends = math.log(low), math.log(high)
    return Effect("ratio", Interval(9, sum(ends) / 2, 1e-6, (ends[1] - ends[0]) / 2), 10.0, 0.0)


def difference(low: float, high: float, mean: float) -> Effect:
    return Effect("difference", Interval(9, (low + high) / 2, 1e-6, (high - low) / 2), mean, 1.0)


@pytest.mark.parametrize(
    ("metric", "low", "high", "word"),
    [
        (TIME, 1.011, 1.03, "beyond"),
        (TIME, 1.009, 1.03, "undecided"),  # it excludes zero, and that is not enough
        (TIME, 1.002, 1.009, "within"),  # worse for certain, and by less than the limit
        (TIME, 0.999, 1.001, "within"),
        (TIME, 0.5, 1.009, "within"),  # wide, and yet it cannot be a regression
        (TIME, 0.5, 0.6, "within"),  # better
        (TIME, 0.99, 1.011, "undecided"),
        (RATE, 0.95, 0.989, "beyond"),
        (RATE, 0.95, 0.991, "undecided"),
        (RATE, 0.9901, 2.0, "within"),  # a fall by less than 1 % is none by more, whatever 1/1.01 is
        (RATE, 1.5, 2.0, "within"),
    ],
)
def test_only_the_whole_interval_decides(metric: Measure, low: float, high: float, word: str) -> None:
    assert limit_word(ratio(low, high), metric, 0.01) == word


@pytest.mark.parametrize(
    ("low", "high", "mean", "word"),
    [
        (1.1, 3.0, 100.0, "beyond"),
        (0.9, 3.0, 100.0, "undecided"),
        (-5.0, 0.9, 100.0, "within"),
        (-5.0, 0.9, -100.0, "within"),
        (0.0, 0.0, 0.0, "within"),
        (1.5, 3.0, 0.0, "beyond"),  # beside a baseline of 0 the limit is one step of the figure
    ],
)
def test_differences_are_shares_of_the_baseline(low: float, high: float, mean: float, word: str) -> None:
    assert limit_word(difference(low, high, mean), COUNT, 0.01) == word


@given(st.floats(0.3, 3), st.floats(0, 1), st.floats(0.001, 0.9))
def test_lower_and_higher_are_alike_where_they_are_turned(middle: float, width: float, limit: float) -> None:
    effect = difference(middle - width, middle + width, 1.0)
    turned = difference(-middle - width, -middle + width, 1.0)
    higher = replace(COUNT, direction="higher")
    assert limit_word(effect, COUNT, limit) == limit_word(turned, higher, limit)


@given(st.floats(-2, 2), st.floats(0, 2), st.floats(0, 2), st.floats(0.001, 0.9))
def test_a_narrower_interval_never_takes_back_what_was_decided(
    middle: float, width: float, more: float, limit: float
) -> None:
    wide = limit_word(difference(middle - width - more, middle + width + more, 1.0), COUNT, limit)
    narrow = limit_word(difference(middle - width, middle + width, 1.0), COUNT, limit)
    assert wide in ("undecided", narrow)


def test_nothing_is_decided_without_an_interval() -> None:
    assert limit_word(Effect("ratio", Interval(1, 0.5, 0.0, math.inf), 1.0, 0.0), TIME, 0.01) == "undecided"

"""Goals of a search: objectives and constraints in words, and what is beyond them."""

from __future__ import annotations

import math

import pytest

from ajuste.model.error import RequestError
from ajuste.model.metric import Metric
from ajuste.model.search import Search
from ajuste_search.tuning.goal import resolve_goal

ELAPSED = Metric(name="elapsed", title="Elapsed", unit="s", direction="lower")
RATE = Metric(name="rate", title="Rate", unit="1/s", direction="higher")
SWITCHES = Metric(name="switches", title="Switches", unit="1", direction="none", scale="difference")
METRICS = (ELAPSED, RATE, SWITCHES)


def limit(text: str, *metrics: Metric) -> tuple[float, bool, bool]:
    (constraint,) = resolve_goal(Search(objectives=("elapsed",), constraints=(text,)), metrics or METRICS).limits
    return constraint.bound, constraint.upper, constraint.relative


def test_a_constraint_is_relative_to_the_baseline_or_a_value_with_a_unit() -> None:
    assert limit("elapsed <= +5%") == (pytest.approx(1.05), True, True)
    assert limit("rate >= -3 %") == (pytest.approx(0.97), False, True)
    assert limit("elapsed<=250ms") == (0.25, True, False)
    assert limit("switches <= 100") == (100, True, False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("elapsed", "expected METRIC <= VALUE"),
        ("elapsed = 3 s", "expected METRIC <= VALUE"),
        ("elapsed <= 3 MiB", "is not a value of elapsed in s"),
        ("elapsed <= -100%", "decrease of less than 100 %"),
        ("switches <= +5%", "can be 0"),
    ],
)
def test_what_is_no_constraint_is_refused(text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        limit(text)


def test_a_metric_without_better_direction_needs_one() -> None:
    with pytest.raises(RequestError, match="has no better direction") as caught:
        resolve_goal(Search(objectives=("switches",)), METRICS)
    assert caught.value.hint == "give --objective switches=lower, or =higher"
    assert resolve_goal(Search(objectives=("switches=lower",)), METRICS).objectives[0].direction == "lower"


def test_excess_is_positive_beyond_a_limit() -> None:
    def beyond(text: str, value: float, baseline: float) -> float:
        (constraint,) = resolve_goal(Search(objectives=("elapsed",), constraints=(text,)), METRICS).limits
        return constraint.excess(value, baseline)

    assert beyond("elapsed <= +10%", 1.1, 1.0) == pytest.approx(0)
    assert beyond("elapsed <= 2 s", 4.0, 1.0) == pytest.approx(math.log(2))
    assert beyond("rate >= -50%", 100, 100) == pytest.approx(-math.log(2))
    assert beyond("switches <= 0", 5, 0) > 0

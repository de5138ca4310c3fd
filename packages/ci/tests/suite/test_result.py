"""A suite's results from those of its members, and the geometric means of their ratios."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Results, Summary
from ajuste.model.trial import Factor
from ajuste.model.verdict import Verdict
from ajuste_ci.suite.model import SuiteEntry, SuiteRecord
from ajuste_ci.suite.result import geometric, suite_result
from ajuste_stats.terms import Direction, Scale


def member(
    ratio: float | None = 1.1,
    *,
    half: float = 0.01,
    direction: Direction = "lower",
    scale: Scale = "ratio",
    metric: str = "time",
    **more: Any,
) -> Results:
    """Two configurations on one metric."""
    verdict = Verdict(
        configuration="b",
        metric=metric,
        unit="s",
        direction=direction,
        scale=scale,
        verdict="undecided",
        estimate=ratio,
        low=None if ratio is None else ratio - half,
        high=None if ratio is None else ratio + half,
        level=0.99,
        blocks=5,
        reason="",
    )
    summary = Summary(n=5, mean=1.0, median=1.0, sd=0.1, sem=0.05, minimum=0.9, maximum=1.1)
    return Results(
        study="s",
        title="",
        question="",
        answer="",
        run="r",
        seed=1,
        clock="virtual",
        digest="d",
        stopped="budget",
        stopped_because="",
        level=0.99,
        smallest_effect=0.02,
        correction="",
        blocks=5,
        verdicts=(verdict,),
        configurations=tuple(
            Measured(name=name, levels={"nice": name}, baseline=name == "a", metrics={metric: summary})
            for name in ("a", "b")
        ),
        factors=(Factor(name="nice", levels=("a", "b"), baseline="a"),),
        metrics=(Metric(name=metric, title="Time", unit="s", direction=direction, scale=scale, what=""),),
        trials=(),
        **more,
    )


def record(*names: str) -> SuiteRecord:
    return SuiteRecord(
        id="suite-x-1",
        name="x",
        title="X",
        question="",
        named="",
        created="",
        level=0.95,
        finished=True,
        entries=tuple(SuiteEntry(name=name, run="r") for name in names),
    )


def test_metrics_are_called_after_their_members() -> None:
    result = suite_result(record("one", "two"), {"one": member(), "two": member()})
    assert [metric.name for metric in result.results.metrics] == ["one", "two"]
    assert [verdict.metric for verdict in result.results.verdicts] == ["one", "two"]
    assert all(verdict.level == 0.95 for verdict in result.results.verdicts), "that of the whole suite"
    assert result.comparisons == 2
    assert set(result.results.configurations[1].metrics) == {"one", "two"}


def test_the_workload_of_a_suite_is_that_of_each_member() -> None:
    plain = member().model_copy(update={"environment": {"workload": "job --fast"}})
    varied = member().model_copy(update={"environment": {"workload": {"a": "job 1", "b": "job 2"}}})
    environment = suite_result(record("one", "two"), {"one": plain, "two": varied}).results.environment
    assert environment["workload"] == {"one": "job --fast", "two a": "job 1", "two b": "job 2"}


def test_the_mean_of_ratios_is_geometric_and_its_interval_that_of_the_bounds() -> None:
    result = suite_result(record("one", "two"), {"one": member(2.0, half=0.1), "two": member(0.5, half=0.1)})
    (mean,) = result.means
    assert mean.estimate == pytest.approx(1.0)
    assert mean.low == pytest.approx((1.9 * 0.4) ** 0.5)
    assert mean.high == pytest.approx((2.1 * 0.6) ** 0.5)
    assert mean.verdict == "undecided"


@pytest.mark.parametrize(
    ("direction", "ratio", "word"),
    [
        ("lower", 1.1, "worsens"),
        ("lower", 0.9, "improves"),
        ("higher", 1.1, "improves"),
        ("higher", 0.9, "worsens"),
        ("higher", 1.001, "equivalent"),
    ],
)
def test_the_word_of_a_mean(direction: Direction, ratio: float, word: str) -> None:
    member_result = member(ratio, direction=direction)
    (mean,) = suite_result(record("a", "b"), {"a": member_result, "b": member_result}).means
    assert mean.verdict == word


def test_metrics_with_different_directions_are_not_averaged() -> None:
    members = {"a": member(), "b": member(), "c": member(direction="higher"), "d": member(direction="higher")}
    assert [mean.members for mean in suite_result(record(*members), members).means] == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize("other", [{"scale": "difference"}, {"direction": "higher"}, {"ratio": None}])
def test_a_mean_needs_two_ratios(other: dict[str, Any]) -> None:
    members = {"a": member(), "b": member(**other)}
    assert suite_result(record("a", "b"), members).means == ()


def test_a_member_that_was_not_measured_is_named_with_the_reason() -> None:
    entry = SuiteEntry(name="gone", reason="no program")
    suite = record("a").model_copy(update={"entries": (*record("a").entries, entry)})
    result = suite_result(suite, {"a": member()})
    assert [(entry.name, entry.reason, entry.metrics) for entry in result.members] == [
        ("a", "", ("a",)),
        ("gone", "no program", ()),
    ]


def test_nothing_was_measured() -> None:
    result = suite_result(record("a"), {})
    assert result.results.configurations == ()
    assert result.means == ()


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20))
def test_a_geometric_mean_lies_between_the_smallest_and_the_largest(ratios: list[float]) -> None:
    mean = geometric(ratios)
    assert mean is not None
    assert min(ratios) * (1 - 1e-9) <= mean <= max(ratios) * (1 + 1e-9)
    assert geometric([*ratios, None]) is None
    assert geometric([*ratios, 0.0]) is None

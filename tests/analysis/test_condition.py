"""Intervals alone decide what makes a script fail."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ajuste.analysis.condition import check, expectations, worsening
from ajuste.analysis.verdict import judge
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Results, Summary
from ajuste.model.verdict import FailCondition, Verdict
from ajuste.study.schema import ExpectedFigure, ExpectTable
from tiers import slow
from verdicts import decided, verdict

ELAPSED = Metric(name="elapsed", title="Elapsed time", unit="s", direction="lower")


def results_of(*verdicts: Verdict, mean: float = 10.0) -> Results:
    summary = Summary(n=5, mean=mean, median=mean, sd=None, sem=None, minimum=mean, maximum=mean)
    baseline = Measured(name="a", levels={}, baseline=True, metrics={"elapsed": summary})
    return decided(smallest_effect=0.02, verdicts=verdicts, configurations=(baseline,), metrics=(ELAPSED,))


def outcome(limit: float | None, *verdicts: Verdict, mean: float = 10.0) -> str:
    (checked,) = check([FailCondition("x", ("elapsed",), limit)], results_of(*verdicts, mean=mean))
    return checked.outcome


@pytest.mark.parametrize(
    ("word", "expected"),
    [("worsens", "worsens"), ("undecided", "undecided"), ("improves", "holds"), ("equivalent", "holds")],
)
def test_without_a_limit_the_verdict_says_it(word: Any, expected: str) -> None:
    assert outcome(None, verdict(word=word)) == expected


def test_what_is_proved_of_one_counts_whatever_is_open_of_others() -> None:
    (checked,) = check(
        [FailCondition("x", ("elapsed",))], results_of(verdict("b"), verdict("c", "worsens"), verdict("d", "improves"))
    )
    assert checked.outcome == "worsens"
    assert [verdict.configuration for verdict in checked.proving] == ["c"]
    assert [verdict.configuration for verdict in checked.open] == ["b"]


@pytest.mark.parametrize(
    ("direction", "low", "high", "expected"),
    [
        ("lower", 1.021, 1.03, "worsens"),
        ("lower", 1.019, 1.03, "undecided"),
        ("lower", 1.005, 1.019, "holds"),
        ("lower", 0.5, 0.6, "holds"),
        ("lower", 1.03, None, "worsens"),
        ("higher", 0.97, 0.979, "worsens"),
        ("higher", 0.97, 0.981, "undecided"),
        ("higher", 0.981, 0.99, "holds"),
        ("higher", 1.5, 1.6, "holds"),
    ],
)
def test_with_a_limit_the_whole_interval_must_lie_beyond_it(
    direction: Any, low: float, high: float | None, expected: str
) -> None:
    assert outcome(0.02, verdict(word="worsens", direction=direction, low=low, high=high)) == expected


def test_differences_are_shares_of_the_baselines_mean_and_infinite_for_a_baseline_of_zero() -> None:
    difference = verdict(word="worsens", scale="difference", low=0.3, high=0.5)
    assert worsening(difference, 10.0) == pytest.approx((0.03, 0.05))
    assert worsening(difference, -10.0) == pytest.approx((0.03, 0.05))
    assert worsening(difference, 0.0) == (math.inf, math.inf)
    assert worsening(verdict(scale="difference", low=0.0, high=0.0), 0.0) == (0.0, 0.0)
    assert worsening(verdict(scale="difference", low=None, high=None), 1.0) == (-math.inf, math.inf)


def test_what_depends_on_the_machine_stays_open() -> None:
    disputed = verdict(word="undecided", depends_on_machine=True, low=1.5, high=1.6)
    assert outcome(None, disputed) == "undecided"
    assert outcome(0.02, disputed) == "undecided"


def test_described_metrics_prove_nothing() -> None:
    assert outcome(None, verdict(word="worsens", deciding=False)) == "holds"


@pytest.mark.parametrize("studies", [60, *slow(200)])
def test_a_false_alarm_is_as_rare_as_the_confidence_says_though_every_block_is_looked_at(
    configurations: Any, trials: Any, studies: int
) -> None:
    """Three configurations that are all exactly at the limit: none is beyond it."""
    made = configurations("1", "2", "3", "4")
    alarms = 0
    for seed in range(studies):
        noise = np.random.default_rng(seed).normal(0, 0.02, (4, 14))
        means = (1.0, 1.05, 1.05, 1.05)
        values = {c.name: list(mean * np.exp(row)) for c, mean, row in zip(made, means, noise, strict=True)}
        for blocks in (3, 5, 7, 10, 14):
            verdicts = judge(made, trials({name: sample[:blocks] for name, sample in values.items()}), [ELAPSED])
            condition = FailCondition("x", ("elapsed",), 0.05)
            if check([condition], results_of(*verdicts))[0].proving:
                alarms += 1
                break
    assert alarms <= 0.05 * studies


def test_an_expected_mean_is_said_with_its_unit() -> None:
    figure = ExpectedFigure(metric="elapsed", configuration="a", most=0.004)
    (checked,) = expectations(ExpectTable(figures=(figure,)), results_of(mean=0.00668), changed=False)
    assert (checked.what, checked.actual) == ("mean elapsed of a: at most 0.004 s", "0.00668 s")
    assert not checked.holds


def test_a_study_that_failed_says_once_what_was_not_there() -> None:
    failed = results_of(mean=1.0).model_copy(update={"stopped": "failed", "stopped_because": "found no clean trial"})
    (checked,) = expectations(ExpectTable(stalls=0), failed, changed=False)
    assert (checked.what, checked.actual, checked.holds) == ("no failed trial", "no clean trial", False)

"""Figures that are coarse, and counts that are rare: *equivalent* is not said of what was not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ajuste.analysis.block_values import measured_points, tabulate_blocks
from ajuste.analysis.pairs import clean_trials
from ajuste.analysis.verdict import judge
from ajuste.model.measurements import Values
from ajuste.model.metric import Metric
from ajuste.model.verdict import Verdict
from ajuste.report.verdicts import verdict_text
from ajuste_analyse.comparison import compare_samples, judge_comparison
from ajuste_live.judge import judge_slices
from ajuste_stats.best_sets import best_set
from ajuste_stats.rounding import rounding_error
from ajuste_stats.switchback.slices import Slice

TIME = Metric(name="time", title="Time", unit="s", direction="lower")
EVENTS = Metric(name="time", title="Events", unit="", direction="lower", scale="difference", resolution=1)


def judged(
    configurations: Any,
    trials: Any,
    metric: Metric,
    base: Sequence[float],
    other: Sequence[float],
    smallest_effect: float = 0.02,
) -> Verdict:
    measured = trials({"knob=1": base, "knob=2": other}, metric="time")
    (verdict,) = judge(configurations("1", "2"), measured, [metric], smallest_effect=smallest_effect)
    return verdict


@pytest.mark.parametrize("resolution", [0.0, 0.01])
def test_a_difference_that_rounding_hides_is_not_equivalent(
    configurations: Any, trials: Any, resolution: float
) -> None:
    """0.096 s and 0.104 s, both printed as 0.10."""
    metric = TIME.model_copy(update={"resolution": resolution})
    verdict = judged(configurations, trials, metric, [0.1] * 40, [0.1] * 40)
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < 0.096 / 0.104 < 0.104 / 0.096 < verdict.high
    assert (verdict.verdict, verdict.too_coarse, verdict.is_open) == ("undecided", True, False)
    assert "print more digits" in verdict.reason
    assert "coarse" in verdict_text(verdict, 0.02)


def test_a_step_that_decides_by_itself_is_no_difference(configurations: Any, trials: Any) -> None:
    """0.1049 and 0.1051 are printed as 0.10 and 0.11."""
    verdict = judged(configurations, trials, TIME, [0.10] * 20, [0.11] * 20)
    assert verdict.verdict == "undecided"
    far = judged(configurations, trials, TIME, [0.11] * 20, [0.19] * 20)
    assert far.verdict == "worsens"


def test_noise_that_crosses_many_steps_resolves_them(configurations: Any, trials: Any) -> None:
    random = np.random.default_rng(1)
    base, other = np.round(random.normal(10, 0.1, (2, 60)), 2)
    assert rounding_error(base, 0.01) == 0
    assert judged(configurations, trials, TIME, base.tolist(), other.tolist()).verdict == "equivalent"


def test_results_of_others_are_as_coarse() -> None:
    both = Values((0.1,) * 20), Values((0.1,) * 20)
    comparison = compare_samples(*both, TIME, 0.05)
    verdict = judge_comparison(
        comparison, "other", TIME, confidence=0.95, alpha=0.05, smallest_effect=0.02, deciding=True
    )
    assert verdict.verdict == "undecided"
    assert "print more digits" in verdict.reason


def test_results_of_others_that_are_all_0_say_that_nothing_happened() -> None:
    metric = Metric(name="errors", title="Errors", unit="", direction="lower")
    comparison = compare_samples(Values((0.0,) * 5), Values((0.0,) * 4), metric, 0.05)
    verdict = judge_comparison(
        comparison, "other", metric, confidence=0.95, alpha=0.05, smallest_effect=0.05, deciding=True
    )
    assert (verdict.verdict, verdict.too_coarse) == ("undecided", False)
    assert "nothing happened in 4 trials" in verdict.reason


@pytest.mark.parametrize(("rate", "times"), [(0.1, 1.9), (0.2, 1.6), (0.05, 2.0)])
def test_rare_counts_are_not_equivalent(configurations: Any, trials: Any, rate: float, times: float) -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        base, other = random.poisson(rate, 30).tolist(), random.poisson(times * rate, 30).tolist()
        verdict = judged(configurations, trials, EVENTS, base, other, 0.3)
        assert verdict.verdict != "equivalent"
        assert verdict.verdict != "undecided" or verdict.reason


def test_counts_that_happen_in_each_trial_are_equivalent(configurations: Any, trials: Any) -> None:
    verdict = judged(configurations, trials, EVENTS, [50] * 40, [50] * 40, 0.05)
    assert verdict.verdict == "equivalent"


def test_many_events_decide_although_some_trials_have_none(configurations: Any, trials: Any) -> None:
    base, other = np.random.default_rng(4).poisson(4, (2, 600)).tolist()
    assert 0 in base
    assert judged(configurations, trials, EVENTS, base, other, 0.2).verdict == "equivalent"


def test_the_best_of_a_surface_is_not_what_rounding_made_of_it(trials: Any) -> None:
    """0.1051, 0.1049 and 0.155 s, printed as 0.11, 0.10 and 0.16."""
    measured = trials({"knob=1": [0.11] * 20, "knob=2": [0.10] * 20, "knob=3": [0.16] * 20}, metric="time")
    names = ["knob=1", "knob=2", "knob=3"]
    blocks = tabulate_blocks(clean_trials(measured), names, TIME, order_matters=False)
    assert blocks is not None
    assert set(best_set(blocks, "lower", 0.05).members) == {0, 1}
    for point, true in zip(measured_points(blocks, 0, 0.11, 0.05), (0.1051, 0.1049, 0.155), strict=True):
        assert point.low is not None
        assert point.high is not None
        assert point.low <= true <= point.high


def test_a_live_service_whose_figures_are_coarse_is_not_equivalent() -> None:
    random = np.random.default_rng(5)
    orders = random.permuted(np.tile(["a", "b"], (200, 1)), axis=1).ravel()
    for values, word in ((np.full(400, 0.10), "undecided"), (random.normal(0.1, 0.0005, 400), "equivalent")):
        slices = [
            Slice(number, number // 2, str(name), 60.0 * number, 60.0 * number + 60, float(value))
            for number, (name, value) in enumerate(zip(orders, values, strict=True))
        ]
        verdict = judge_slices(
            slices, TIME, baseline="a", configurations=["a", "b"], smallest_effect=0.02, diagnose_noise=False
        ).verdicts[0]
        assert verdict.verdict == word


def test_times_that_are_0_are_no_events(configurations: Any, trials: Any) -> None:
    none, single = [0.0] * 20, [0.0] * 19 + [0.012345]
    for other, word in ((none, "print more digits"), (single, "1 independent trial")):
        reason = judged(configurations, trials, TIME, none, other).reason
        assert word in reason
        assert "event" not in reason
    assert "1 independent event" in judged(configurations, trials, EVENTS, none, [0.0] * 19 + [1.0]).reason


@pytest.mark.parametrize("count", [3, 30])
def test_constants_of_others_are_as_coarse_as_their_step_however_many_there_are(count: int) -> None:
    """Bytes and allocations of an operation, as go test prints them: whole numbers."""
    for unit in ("bytes", ""):
        metric = Metric(name="size", title="Size", unit=unit, direction="lower", scale="difference", resolution=1)
        words = []
        for base, other in ((16.0, 16.0), (16.0, 24.0), (1024.0, 1024.0)):
            comparison = compare_samples(Values((base,) * count), Values((other,) * count), metric, 0.05)
            verdict = judge_comparison(
                comparison, "other", metric, confidence=0.95, alpha=0.05, smallest_effect=0.02, deciding=True
            )
            words.append((verdict.verdict, verdict.too_coarse))
        assert words == [("undecided", True), ("worsens", False), ("equivalent", False)]


def test_each_of_two_programs_has_digits_of_its_own(configurations: Any, trials: Any) -> None:
    """96 ms is printed as 0.10 by one, 100 ms as 0.1000 by the other; alike to the last digit of one only."""
    other = (0.1 + 0.0001 * np.random.default_rng(1).integers(-9, 10, 40)).round(4).tolist()
    verdict = judged(configurations, trials, TIME, [0.1] * 40, other)
    assert (verdict.verdict, verdict.too_coarse) == ("undecided", True)
    assert verdict.high is not None
    assert verdict.high > 0.1 / 0.096
    comparison = compare_samples(Values((0.1,) * 40), Values(tuple(other)), TIME, 0.05)
    assert comparison.effect.high is not None
    assert comparison.effect.high > 0.1 / 0.096


def test_figures_that_end_at_a_limit_are_not_equivalent(configurations: Any, trials: Any) -> None:
    """Most figures are exactly 1 s, the others differ: what would lie beyond 1 s is unknown."""
    random = np.random.default_rng(1)
    base, other = (np.minimum(np.exp(0.1 + mean + 0.1 * random.standard_normal(40)), 1.0) for mean in (0.0, 0.05))
    metric = TIME.model_copy(update={"resolution": 1e-9})
    verdict = judged(configurations, trials, metric, base.tolist(), other.tolist(), 0.05)
    assert verdict.verdict == "undecided"
    assert "exactly 1 s" in verdict.reason
    base, other = (np.exp(0.01 * random.standard_normal(40)) for _ in range(2))
    assert judged(configurations, trials, metric, base.tolist(), other.tolist(), 0.05).verdict == "equivalent"

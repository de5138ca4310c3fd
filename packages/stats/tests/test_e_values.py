"""Evidence and the error budget of campaigns, against what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from ajuste_stats.confidence_sequences import half_width, mean_interval
from ajuste_stats.e_values import ErrorBudget, improvement_log_value, improvement_value, is_promoted, mixture_log_value


@pytest.mark.parametrize("n", [5, 12, 40])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_the_two_sided_evidence_is_one_by_alpha_exactly_at_the_end_of_the_interval(n: int, alpha: float) -> None:
    width = half_width(n, 2.0, alpha)
    if math.isfinite(width):
        log_value = mixture_log_value(np.array([n]), np.array([width]), np.array([2.0]))
        assert log_value[0] == pytest.approx(-math.log(alpha))


@pytest.mark.parametrize("n", [5, 12, 40])
def test_where_nothing_changes_the_evidence_is_one_on_average(n: int) -> None:
    def weighted(t: float) -> float:
        """The evidence of n values with Student's t, by the density of t."""
        log_value = improvement_log_value(np.array([n]), np.array([t]), np.array([n - 1.0]))
        return float(np.exp(log_value[0] + stats.t.logpdf(t, n - 1)))

    assert integrate.quad(weighted, 0, np.inf, limit=500)[0] == pytest.approx(1, rel=1e-4)


def test_where_things_get_worse_the_evidence_is_less_than_one_on_average() -> None:
    values = np.random.default_rng(1).normal(-0.3, 3, (200_000, 5))
    e_values = np.exp(improvement_log_value(np.full(len(values), 5.0), values.mean(axis=1), values.var(axis=1)))
    assert np.mean(e_values) < 0.9


def test_an_improvement_is_told_from_a_change_for_the_worse() -> None:
    values = np.random.default_rng(2).normal(-1, 0.2, 20)
    interval = mean_interval(values, alpha=0.05)
    assert improvement_value(interval, "lower") > 1e6
    assert improvement_value(interval, "higher") == 0


def test_a_share_of_the_budget_is_spent_by_every_test_and_earned_by_promotions() -> None:
    budget = ErrorBudget(0.05, 4)
    assert [budget.level(tested, 0) for tested in range(5)] == pytest.approx([0.0125] * 4 + [0])
    assert budget.level(2, 1) == pytest.approx(0.025)
    assert budget.promoted([79, 80, 40, 1]) == [False, True, True, False]
    assert not is_promoted(1e300, 0)

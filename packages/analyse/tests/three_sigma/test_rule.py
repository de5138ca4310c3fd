"""The 3-sigma rule beside the verdicts, against numpy and scipy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from ajuste.analysis.verdict import judge
from ajuste.model.metric import Metric
from ajuste.model.three_sigma import ThreeSigma
from ajuste.model.trial import Configuration, Trial
from ajuste_analyse.three_sigma import three_sigma

Configurations = Callable[..., list[Configuration]]
Build = Callable[..., list[Trial]]


@pytest.fixture
def compare(configurations: Configurations, trials: Build, elapsed: Metric) -> Callable[..., tuple[ThreeSigma, ...]]:
    """``compare(baseline, other)``: the baseline's row and the other's."""

    def of(*samples: list[float]) -> tuple[ThreeSigma, ...]:
        made = configurations(*map(str, range(len(samples))))
        tried = trials({f"knob={number}": sample for number, sample in enumerate(samples)})
        return three_sigma(made, tried, [elapsed], judge(made, tried, [elapsed]), 0.95)

    return of


def normal(mean: float, sd: float, n: int, seed: int) -> list[float]:
    """Values of exactly that mean and (sample) standard deviation."""
    values = np.random.default_rng(seed).normal(size=n)
    values = (values - values.mean()) / values.std(ddof=1)
    return [float(value) for value in mean + sd * values]


def test_ranges_are_three_standard_deviations_of_the_values_and_of_the_mean(
    compare: Callable[..., tuple[ThreeSigma, ...]],
) -> None:
    sample = [2.0, 2.5, 3.0, 2.2, 2.9]
    baseline, _ = compare(sample, [1.0, 1.1, 1.2, 1.3, 1.4])
    sd = np.std(sample, ddof=1)
    assert baseline.n == 5
    assert baseline.values == pytest.approx((np.mean(sample) - 3 * sd, np.mean(sample) + 3 * sd))
    sem = stats.sem(sample)
    assert baseline.means == pytest.approx((np.mean(sample) - 3 * sem, np.mean(sample) + 3 * sem))
    assert (baseline.values_differ, baseline.means_differ, baseline.verdict) == (None, None, None)


@pytest.mark.parametrize("apart", [2.9, 3.1])
def test_means_differ_beyond_three_standard_errors_of_their_difference(
    compare: Callable[..., tuple[ThreeSigma, ...]], apart: float
) -> None:
    n = 8
    other_mean = 10 + apart * np.sqrt(2 / n) * 0.1
    _, row = compare(normal(10, 0.1, n, 1), normal(other_mean, 0.1, n, 2))
    t = stats.ttest_ind(normal(10, 0.1, n, 1), normal(other_mean, 0.1, n, 2)).statistic
    assert abs(t) == pytest.approx(apart)
    assert row.means_differ is (apart > 3)
    assert row.values_differ is False


def test_values_differ_beyond_three_standard_deviations_of_the_difference_of_two(
    compare: Callable[..., tuple[ThreeSigma, ...]],
) -> None:
    baseline, other = normal(10, 0.1, 9, 1), normal(10.5, 0.1, 9, 2)
    assert 3 * np.hypot(0.1, 0.1) < 0.5
    _, row = compare(baseline, other)
    assert (row.values_differ, row.means_differ, row.verdict) == (True, True, "worsens")
    assert not row.disagrees
    assert not row.why


def test_drift_from_block_to_block_hides_a_difference_from_the_rule_only(
    compare: Callable[..., tuple[ThreeSigma, ...]],
) -> None:
    drift = np.linspace(1.0, 3.0, 12)
    noise = np.random.default_rng(3).normal(scale=0.001, size=12)
    _, row = compare(list(drift), list(1.2 * drift + noise))
    assert (row.values_differ, row.means_differ, row.verdict) == (False, False, "worsens")
    assert row.disagrees
    assert "Drift from block to block" in row.why


def test_a_few_values_that_look_apart_are_called_different_by_the_rule_only(
    compare: Callable[..., tuple[ThreeSigma, ...]],
) -> None:
    _, row, *_ = compare([1.0, 1.01, 1.02], [1.1, 1.14, 1.12], [1.0, 1.3, 1.1])
    assert (row.means_differ, row.verdict) == (True, "undecided")
    assert row.disagrees
    by_chance = 2 * stats.t.sf(3, 4)
    assert f"{100 * by_chance:.1g} %" in row.why
    assert "2 comparisons" in row.why


def test_a_difference_too_small_to_matter_is_named_as_such(compare: Callable[..., tuple[ThreeSigma, ...]]) -> None:
    _, row = compare(normal(10, 0.001, 30, 1), normal(10.1, 0.001, 30, 2))
    assert (row.means_differ, row.verdict) == (True, "equivalent")
    assert "too small to matter" in row.why


def test_values_that_are_all_alike_differ_only_if_they_are_others(
    compare: Callable[..., tuple[ThreeSigma, ...]],
) -> None:
    _, same, other = compare([5.0] * 6, [5.0] * 6, [6.0] * 6)
    assert (same.values_differ, same.means_differ) == (False, False)
    assert (other.values_differ, other.means_differ) == (True, True)


def test_below_two_values_the_rule_says_nothing(compare: Callable[..., tuple[ThreeSigma, ...]]) -> None:
    _, row = compare([5.0], [6.0])
    assert row.values is None
    assert (row.values_differ, row.means_differ, row.disagrees) == (None, None, False)

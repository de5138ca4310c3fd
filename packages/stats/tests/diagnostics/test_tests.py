"""The tests behind the diagnostics, against scipy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ajuste_stats.diagnostics import (
    bimodality,
    lag_1_correlation,
    order,
    spread,
    spread_ties,
    trend_test,
    two_groups,
    warm_up,
)
from ajuste_stats.heterogeneity import variance_between


def normal(random: Any, configuration: Any, block: Any, position: Any) -> Any:
    return random.normal(0, 0.01, len(block)) * (1 + configuration)


@pytest.mark.parametrize("seed", range(5))
def test_the_trend_agrees_with_kendalls_tau_and_theil_sen(seed: int) -> None:
    random = np.random.default_rng(seed)
    places = np.arange(60.0)
    values = np.round(random.normal(0, 1, 60) + 0.01 * seed * places, 1)
    p_value, slope = trend_test(values, places)
    assert slope == pytest.approx(stats.theilslopes(values, places).slope, abs=1e-12)
    score = stats.norm.isf(stats.kendalltau(places, values, method="asymptotic").pvalue / 2)
    _, ties = np.unique(values, return_counts=True)
    variance = (60 * 59 * 125 - np.sum(ties * (ties - 1) * (2 * ties + 5))) / 18
    assert stats.norm.isf(p_value / 2) == pytest.approx(max(0, score - 1 / variance**0.5), abs=1e-9)


def test_the_variance_between_groups_is_fishers(residuals: Any) -> None:
    random = np.random.default_rng(1)
    groups = random.integers(0, 4, 80)
    values = random.normal(0, 1, 80) + 0.3 * groups
    p_value, effects = variance_between(values, groups)
    by_group = [values[groups == group] for group in range(4)]
    assert p_value == pytest.approx(stats.f_oneway(*by_group).pvalue, rel=1e-9)
    assert effects == pytest.approx([group.mean() - values.mean() for group in by_group])


def test_unequal_variance_is_brown_and_forsythes(residuals: Any) -> None:
    made = residuals(normal, 4)
    finding = spread(made)
    wanted = stats.levene(*made.by_treatment, center="median")
    assert finding is not None
    assert finding.p_value == pytest.approx(wanted.pvalue, rel=1e-9)
    assert finding.treatment == "c2"


def test_the_order_is_a_t_test_on_the_slopes_of_the_blocks(residuals: Any) -> None:
    made = residuals(normal, 5)
    slopes = [
        stats.linregress(made.position[made.block == block], made.values[made.block == block]).slope
        for block in range(made.blocks)
    ]
    finding = order(made)
    assert finding is not None
    assert finding.p_value == pytest.approx(stats.ttest_1samp(slopes, 0).pvalue, rel=1e-9)


def test_the_first_blocks_are_predicted_by_the_line_through_the_others(residuals: Any) -> None:
    def cold(random: Any, configuration: Any, block: Any, position: Any) -> Any:
        return random.normal(0, 0.01, len(block)) + 0.03 * (block < 1) + 0.001 * block

    made = residuals(cold, 6, blocks=20)
    finding = warm_up(made)
    places, means = np.arange(20.0), made.block_averages
    line = stats.linregress(places[1:], means[1:])
    left = means[1:] - line.intercept - line.slope * places[1:]
    error = np.sqrt(np.sum(left**2) / 17 * (1 + 1 / 19 + (places[1:].mean()) ** 2 / np.sum((places[1:] - 10) ** 2)))
    off = means[0] - line.intercept
    assert finding is not None
    assert finding.value == pytest.approx(np.expm1(off), rel=1e-9)
    assert finding.p_value == pytest.approx(2 * 3 * stats.t.sf(abs(off) / error, 17), rel=1e-9)


def test_a_wave_is_no_warm_up(residuals: Any) -> None:
    def wave(random: Any, configuration: Any, block: Any, position: Any) -> Any:
        return 0.05 * np.sin(block / 10) + random.normal(0, 0.01, len(block))

    finding = warm_up(residuals(wave, 1, blocks=100))
    assert finding is not None
    assert finding.p_value == 1.0


def test_the_correlation_of_neighbours_is_that_of_the_series() -> None:
    values = np.array([1.0, 2.0, 4.0, 3.0, 0.0])
    away = values - 2.0
    assert lag_1_correlation(values) == pytest.approx(np.sum(away[1:] * away[:-1]) / np.sum(away**2))
    assert lag_1_correlation(np.ones(4)) is None


def test_counts_are_no_groups_but_two_rates_are(residuals: Any) -> None:
    def counted(rates: tuple[float, float]) -> Any:
        def noise(random: Any, configuration: Any, block: Any, position: Any) -> Any:
            return np.log(random.poisson(np.where(random.random(len(block)) < 0.5, *rates)))

        return noise

    equal_rates, unequal_rates = (
        bimodality(residuals(counted(rates), 2, 2, 200)) for rates in ((30.0, 30.0), (30.0, 90.0))
    )
    assert equal_rates is not None
    assert unequal_rates is not None
    assert equal_rates.p_value == 1.0
    assert unequal_rates.p_value is not None
    assert unequal_rates.p_value < 1e-6
    assert unequal_rates.value == pytest.approx(2, rel=0.15)


def test_groups_that_differ_by_less_than_matters_are_no_problem(residuals: Any) -> None:
    """Two layouts of a guest differ by 0.001 %: the dip test is sure of them, and nobody is concerned."""

    def near(random: Any, configuration: Any, block: Any, position: Any) -> Any:
        return 1e-5 * random.integers(0, 2, len(block)) + random.normal(0, 1e-7, len(block))

    certain, minor = (bimodality(residuals(near, 2, 2, 60), apart_by) for apart_by in (0.0, np.log1p(0.05)))
    assert certain is not None
    assert minor is not None
    assert certain.p_value is not None
    assert certain.p_value < 1e-6
    assert minor.p_value == 1.0


def test_two_groups_are_seen_in_more_values_than_the_tables_of_the_dip_test_have(residuals: Any) -> None:
    def two_apart(random: Any, configuration: Any, block: Any, position: Any) -> Any:
        return random.normal(0, 0.01, len(block)) + random.integers(0, 2, len(block))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        finding = bimodality(residuals(two_apart, 2, 2, 80_000))
    assert finding is not None
    assert finding.p_value is not None
    assert finding.p_value < 1e-6


def test_equal_values_are_spread_over_their_step() -> None:
    assert spread_ties(np.array([1.0, 2.0, 2.0, 3.0])).tolist() == [1.0, 1.75, 2.25, 3.0]
    assert two_groups(np.array([0.0, 0.1, 5.0, 5.1, 5.2])) == pytest.approx((0.6, 5.05))

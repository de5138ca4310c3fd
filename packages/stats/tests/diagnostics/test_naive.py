"""The formulas for the naive comparison, against simulating it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ajuste_stats.naive_errors import (
    BATCH,
    error_in,
    error_of_autocorrelation,
    error_of_bias,
    error_of_shape,
    error_of_trend,
    error_of_unequal_spread,
    inflation,
)

STUDIES = 20_000


def simulated(noise: Callable[[Any], Any]) -> float:
    """Return how often Student's test at 5 % finds something in 2 × ``BATCH`` values in a row."""
    values = noise(np.random.default_rng(7))
    return float(np.mean(stats.ttest_ind(values[:, :BATCH], values[:, BATCH:], axis=1).pvalue < 0.05))


def normal(random: Any) -> Any:
    return random.normal(0, 1, (STUDIES, 2 * BATCH))


def autoregressive(random: Any, rho: float) -> Any:
    values = normal(random)
    values[:, 1:] *= (1 - rho**2) ** 0.5
    for place in range(1, 2 * BATCH):
        values[:, place] += rho * values[:, place - 1]
    return values


def test_without_a_defect_it_is_what_was_promised() -> None:
    for error in (error_of_bias(0, 1), error_of_trend(0, 1), error_of_autocorrelation(0), error_of_unequal_spread(1)):
        assert error == pytest.approx(0.05, abs=1e-9)


def test_a_bias_a_trend_and_unequal_spreads_do_what_the_formulas_say() -> None:
    second = np.arange(2 * BATCH) >= BATCH
    assert simulated(lambda random: normal(random) + 0.8 * second) == pytest.approx(error_of_bias(0.8, 1), abs=0.01)
    trend = simulated(lambda random: normal(random) + 0.1 * np.arange(2 * BATCH))
    assert trend == pytest.approx(error_of_trend(0.1, 1), abs=0.02)
    spreads = simulated(lambda random: normal(random) * (1 + 3 * second))
    assert spreads == pytest.approx(error_of_unequal_spread(4), abs=0.006)


@pytest.mark.parametrize("rho", [0.2, 0.5, 0.8])
def test_autocorrelation_inflates_the_variance_as_the_formula_says(rho: float) -> None:
    values = autoregressive(np.random.default_rng(3), rho)
    first, second = values[:, :BATCH], values[:, BATCH:]
    true = np.var(first.mean(axis=1) - second.mean(axis=1))
    claimed = np.mean((first.var(axis=1, ddof=1) + second.var(axis=1, ddof=1)) / BATCH)
    assert inflation(rho) == pytest.approx(true / claimed, rel=0.05)
    # The claimed variance varies more than that of independent values: the formula says a little too little.
    wrong = simulated(lambda random: autoregressive(random, rho))
    assert error_of_autocorrelation(rho) == pytest.approx(wrong, rel=0.15)


def test_pieces_of_a_series_are_tested_as_scipy_tests_them() -> None:
    series = np.cumsum(np.random.default_rng(1).normal(0, 1, 60))
    wanted = [
        stats.ttest_ind(series[at : at + BATCH], series[at + BATCH : at + 2 * BATCH], equal_var=False).pvalue < 0.05
        for at in range(60 - 2 * BATCH + 1)
    ]
    assert error_in(series) == (np.mean(wanted), len(wanted))


def test_the_shape_alone_hardly_misleads_a_t_test() -> None:
    random = np.random.default_rng(2)
    assert error_of_shape(random.normal(0, 1, 500), np.random.default_rng(1)) == pytest.approx(0.05, abs=0.015)
    assert (
        error_of_shape(np.where(random.random(500) < 0.03, 20.0, random.normal(0, 1, 500)), np.random.default_rng(1))
        < 0.05
    )

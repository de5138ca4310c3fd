from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ajuste_stats.confidence_sequences import (
    MIXTURE,
    fewest,
    half_width,
    mean_interval,
    mixture_half_width,
    values_needed,
)


def log_evidence(values: np.ndarray, mean: float) -> float:
    """Log of the mixture's likelihood against that of ``mean``, by numerical integration over its definition.

    Effect sizes δ ~ N(0, 1/c²), scale σ with density 1/σ in both. With u = log σ the integral over σ is one over u.
    Sums over a grid converge exponentially for functions this smooth (Trefethen and Weideman 2014, SIAM Review 56).
    """
    x = values - mean
    x = x / math.sqrt(float(np.mean(x**2)))
    n, total, squares = len(x), float(x.sum()), float((x**2).sum())
    u = np.arange(-8, 12, 0.02)[None, :]
    delta = np.arange(-30, 30, 0.05)[:, None]

    def likelihood(effect: np.ndarray) -> np.ndarray:
        return np.exp(-n * u - 0.5 * (squares * np.exp(-2 * u) - 2 * effect * total * np.exp(-u) + n * effect**2))

    mixed = (likelihood(delta) * stats.norm.pdf(delta, scale=MIXTURE**-0.5)).sum() * 0.05
    return math.log(mixed / likelihood(np.zeros((1, 1))).sum())


@pytest.mark.parametrize(("n", "alpha"), [(4, 0.05), (7, 0.05), (12, 0.001)])
def test_both_ends_of_the_interval_are_where_the_evidence_reaches_one_over_alpha(n: int, alpha: float) -> None:
    values = np.random.default_rng(n).normal(3.0, 2.0, n)
    interval = mean_interval(values, alpha=alpha)
    assert log_evidence(values, interval.low) == pytest.approx(math.log(1 / alpha), rel=1e-9)
    assert log_evidence(values, interval.high) == pytest.approx(math.log(1 / alpha), rel=1e-9)
    assert log_evidence(values, interval.mean) < 0


def errors(looks: range, width: object, runs: int = 8000) -> float:
    """Return how often a sequence of looks at normal values of mean 0 ever excludes 0."""
    values = np.random.default_rng(20261).standard_normal((runs, looks.stop))
    ever = np.zeros(runs, dtype=bool)
    for n in looks:
        spread = np.sqrt(values[:, :n].var(axis=1))
        ever |= np.abs(values[:, :n].mean(axis=1)) > width(n) * spread  # type: ignore[operator]
    return float(ever.mean())


def test_looking_after_every_block_is_wrong_less_often_than_alpha() -> None:
    rate = errors(range(2, 201), lambda n: half_width(n, 1.0, 0.05))
    assert 0.01 < rate <= 0.05


def test_the_same_looks_with_an_ordinary_t_test_are_wrong_far_more_often() -> None:
    rate = errors(range(5, 31), lambda n: stats.t.ppf(0.975, n - 1) / math.sqrt(n - 1))
    assert rate > 0.15
    assert errors(range(5, 31), lambda n: half_width(n, 1.0, 0.05)) <= 0.05


def test_the_interval_is_wider_than_the_fixed_sample_one_but_not_absurdly() -> None:
    for n in (5, 10, 30, 100):
        fixed = stats.t.ppf(0.975, n - 1) / math.sqrt(n - 1)
        assert fixed < half_width(n, 1.0, 0.05) < 2.2 * fixed


def test_too_few_values_give_no_bound() -> None:
    assert math.isinf(half_width(2, 1.0, 0.05))
    assert fewest(0.05) == 3
    assert fewest(0.001) > 3


@given(st.integers(1, 500), st.floats(1e-6, 0.5), st.floats(0, 1e12))
def test_more_values_never_widen_and_variance_scales(n: int, alpha: float, variance: float) -> None:
    assert half_width(n + 1, 1.0, alpha) <= half_width(n, 1.0, alpha)
    if math.isfinite(half_width(n, 1.0, alpha)):
        assert half_width(n, variance, alpha) == pytest.approx(math.sqrt(variance) * half_width(n, 1.0, alpha))


@given(st.floats(1e-4, 0.2), st.floats(0.02, 50))
def test_the_prediction_is_the_first_number_of_values_that_suffices(alpha: float, wanted: float) -> None:
    needed = values_needed(1.0, wanted, alpha, most=100_000)
    if needed is None:
        assert half_width(100_000, 1.0, alpha) >= wanted
    else:
        assert half_width(needed, 1.0, alpha) < wanted <= half_width(needed - 1, 1.0, alpha)


def test_identical_values_are_known_no_better_than_the_floor() -> None:
    values = np.full(10, 4.0)
    assert mean_interval(values, alpha=0.05).half_width == 0
    floored = mean_interval(values, alpha=0.05, floor=1 / 6)
    assert floored.half_width == half_width(10, 1 / 6, 0.05) > 0


@pytest.mark.parametrize(("n", "variance", "alpha"), [(0, 1.0, 0.05), (3, -1.0, 0.05), (3, 1.0, 0.0), (3, 1.0, 1.0)])
def test_impossible_requests_are_refused(n: int, variance: float, alpha: float) -> None:
    with pytest.raises(ValueError, match="expected"):
        half_width(n, variance, alpha)


def test_the_mixture_of_a_linear_model_is_that_of_one_mean() -> None:
    n = np.array([4.0, 9.0, 30.0])
    unbiased = 2.0 * n / (n - 1)
    expected = [half_width(int(count), 2.0, 0.02) for count in n]
    assert mixture_half_width(n, unbiased, n - 1, 0.02) == pytest.approx(expected)


def test_known_noise_makes_intervals_narrower() -> None:
    few, many = mixture_half_width(np.array([3.0, 3.0]), np.ones(2), np.array([2.0, 60.0]), 0.05 / 29)
    assert math.isinf(few)
    assert many < 4

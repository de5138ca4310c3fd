"""The evidence of random orders: it may not accuse what does nothing, whatever the noise is like."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from ajuste_stats.confidence_sequences import mean_interval
from ajuste_stats.sign_intervals import LONG, fewest_blocks, log_evidence, standardised
from ajuste_stats.switchback.evidence import adjusted, blocks_needed, sequence_interval

RUNS, BLOCKS = 2_000, 120


RANDOM = np.random.default_rng(1)


NOISES = {
    "normal": RANDOM.normal(0, 1, (RUNS, BLOCKS)),
    "of heavy tails": RANDOM.standard_t(2, (RUNS, BLOCKS)),
    "of equal size": np.ones((RUNS, BLOCKS)),
    "growing": RANDOM.normal(0, 1, (RUNS, BLOCKS)) * np.exp(np.linspace(0, 4, BLOCKS)),
    "fading": RANDOM.normal(0, 1, (RUNS, BLOCKS)) * np.exp(np.linspace(4, 0, BLOCKS)),
    "wandering": np.cumsum(RANDOM.normal(0, 1, (RUNS, BLOCKS)), axis=1),
}


def with_random_signs(noise: np.ndarray) -> np.ndarray:
    return noise * np.random.default_rng(2).choice([-1.0, 1.0], noise.shape)


@pytest.mark.parametrize("name", NOISES)
def test_at_most_5_percent_are_ever_accused_whatever_the_noise(name: str) -> None:
    evidence = log_evidence(with_random_signs(NOISES[name]))
    assert np.mean(evidence.max(axis=1) >= math.log(20)) <= 0.05


@pytest.mark.parametrize("name", NOISES)
def test_the_adjustment_for_a_control_keeps_that_promise(name: str) -> None:
    signs = np.random.default_rng(3).choice([-1.0, 1.0], (RUNS, BLOCKS))
    control = NOISES["normal"] * signs
    left = adjusted(NOISES[name] * signs + 2 * control, control)
    assert np.mean(log_evidence(left).max(axis=1) >= math.log(20)) <= 0.05


@given(st.lists(st.floats(-5, 5).filter(lambda x: abs(x) > 1e-3), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_the_mean_evidence_over_all_signs_is_exactly_1(sizes: list[float]) -> None:
    n = len(sizes)
    signs = np.array([[1.0 if number >> bit & 1 else -1.0 for bit in range(n)] for number in range(2**n)])
    assert np.exp(log_evidence(signs * np.array(sizes)))[:, -1].mean() == pytest.approx(1.0)


def test_the_scale_does_not_matter_and_the_floor_does() -> None:
    values = np.random.default_rng(4).normal(1, 1, 30)
    assert log_evidence(1e6 * values) == pytest.approx(log_evidence(values))
    assert np.all(np.abs(standardised(1e-9 * values, floor=1.0)) < 1e-7)
    assert np.all(standardised(np.zeros(5)) == 0)


@pytest.mark.parametrize("n", [15, 60, 240])
def test_the_interval_is_about_as_narrow_as_one_that_relies_on_normal_noise(n: int) -> None:
    draws = np.random.default_rng(5).normal(0.3, 1, (20, n))
    intervals = [sequence_interval(draw, alpha=0.05) for draw in draws]
    normal = [mean_interval(draw, alpha=0.05) for draw in draws]
    ratio = np.median([interval.high - interval.low for interval in intervals]) / np.median(
        [interval.high - interval.low for interval in normal]
    )
    assert 0.7 < ratio < 1.3
    assert all(interval.low < interval.mean < interval.high for interval in intervals)


def test_the_interval_has_exactly_the_effects_that_are_not_refuted() -> None:
    values = np.random.default_rng(6).normal(0.5, 1, 40)
    interval = sequence_interval(values, alpha=0.05)
    inside, outside = log_evidence(values - interval.low - 1e-6)[-1], log_evidence(values - interval.low + 1e-6)[-1]
    assert inside < math.log(20) <= outside


def test_fewer_blocks_than_the_fewest_say_nothing() -> None:
    fewest = fewest_blocks(0.05, "long")
    alike = np.full(fewest, 1.0)
    assert math.isfinite(sequence_interval(alike, alpha=0.05, floor=0.1).half_width)
    assert math.isinf(sequence_interval(alike[1:], alpha=0.05, floor=0.1).half_width)


def test_a_control_that_explains_the_noise_narrows_the_interval() -> None:
    random = np.random.default_rng(7)
    control = random.normal(0, 1, 60)
    values = 0.2 + control + random.normal(0, 0.1, 60)
    plain, better = sequence_interval(values, alpha=0.05), sequence_interval(values, alpha=0.05, control=control)
    assert better.half_width < plain.half_width / 3
    assert better.low < 0.2 < better.high
    assert better.mean == pytest.approx(0.2, abs=0.05)


def test_the_growth_that_predictions_rest_on_is_that_of_the_normal_distribution() -> None:
    noise = np.random.default_rng(8).normal(0, 1, 20_000)
    needed = blocks_needed(noise, 0.5, 0.05)

    def growth(slope: float) -> float:
        scale = math.sqrt(1.25)

        def integrand(x: float) -> float:
            z = slope * (x + 0.5) / scale
            return (z - math.log(math.cosh(z))) * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)

        return float(integrate.quad(integrand, -10, 10)[0])

    gains = np.array([growth(slope) for slope in LONG.slopes])
    n = next(n for n in range(1, 200) if np.logaddexp.reduce(n * gains) >= math.log(2 * len(LONG.slopes) * 20))
    assert needed is not None
    assert abs(needed - n) <= 2


def test_half_of_all_experiments_are_over_when_half_of_them_were_predicted_to_be() -> None:
    draws = np.random.default_rng(9).normal(0.3, 1, (1_000, 400))
    first = 1 + np.argmax(log_evidence(draws) >= math.log(20), axis=1)
    in_half = blocks_needed(np.random.default_rng(10).normal(0, 1, 2_000), 0.3, 0.05)
    in_most = blocks_needed(np.random.default_rng(10).normal(0, 1, 2_000), 0.3, 0.05, shortfall=1.645)
    assert in_half == pytest.approx(float(np.median(first)), rel=0.3)
    assert in_most == pytest.approx(float(np.quantile(first, 0.95)), rel=0.3)


def test_without_an_effect_or_spread_nothing_is_predicted() -> None:
    assert blocks_needed(np.ones(10), 0.0, 0.05) is None
    assert blocks_needed(np.ones(2), 1.0, 0.05) is None
    assert blocks_needed(np.ones(10), 1e-6, 0.05) is None

"""Orders of switchbacks, and wash-outs: what randomness must be like for verdicts to hold."""

from __future__ import annotations

import numpy as np
import pytest

from ajuste_live.wash_out import StepResponse, estimate_wash_out


def noise(random: np.random.Generator, count: int, rho: float = 0.8, sd: float = 0.02) -> list[float]:
    values = [random.normal(0, sd / (1 - rho**2) ** 0.5)]
    while len(values) < count:
        values.append(rho * values[-1] + random.normal(0, sd))
    return values


def responses(random: np.random.Generator, amplitude: float, changes: int = 12) -> list[StepResponse]:
    decay = np.exp(-np.arange(60) / 5)
    return [
        StepResponse(old, new, tuple(1 + sign * amplitude * decay + noise(random, 60)))
        for _ in range(changes)
        for old, new, sign in (("a", "b", 1), ("b", "a", -1))
    ]


def test_the_wash_out_is_three_times_the_time_constant() -> None:
    estimates = [estimate_wash_out(responses(np.random.default_rng(seed), 0.15), 1.0) for seed in range(10)]
    constants = [estimate.constant_s for estimate in estimates]
    assert all(constant is not None and 3 < constant < 8 for constant in constants)
    assert 13 <= float(np.median([estimate.seconds for estimate in estimates])) <= 18


def test_noise_that_resembles_itself_is_no_response() -> None:
    constants = [
        estimate_wash_out(responses(np.random.default_rng(seed), 0.0), 1.0, least_s=2.0).constant_s
        for seed in range(60)
    ]
    assert sum(constant is not None for constant in constants) <= 6


def test_a_disturbance_by_each_change_is_a_response_too() -> None:
    random = np.random.default_rng(1)
    decay = np.exp(-np.arange(40) / 4)
    both = [
        StepResponse(old, new, tuple(5 + decay + noise(random, 40)))
        for _ in range(6)
        for old, new in (("a", "b"), ("b", "a"))
    ]
    estimate = estimate_wash_out(both, 0.5)
    assert estimate.constant_s == pytest.approx(2.0, rel=0.3)


def test_too_few_changes_say_nothing() -> None:
    estimate = estimate_wash_out(responses(np.random.default_rng(1), 1.0, changes=2), 1.0, least_s=5.0)
    assert (estimate.seconds, estimate.constant_s) == (5.0, None)
    assert "fewer than 3 changes" in estimate.says

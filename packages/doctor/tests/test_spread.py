"""Blocks and effects that are estimated, against simulated noise of known spread and the project's own intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste_doctor.diagnosis import ALPHA, NoiseSpread, blocks_for, drift_percent, effect_after, measure_spread
from ajuste_stats.confidence_sequences import mean_interval

SD = 0.02
"""Standard deviation of the log of one run."""


def blocks_until_seen(effect: float, random: np.random.Generator, most: int) -> int:
    """Return how many blocks a study takes until its interval excludes no difference, looking after each."""
    ratios = np.log1p(effect) + random.normal(0, SD * np.sqrt(2), most)
    for n in range(3, most + 1):
        interval = mean_interval(ratios[:n], alpha=ALPHA)
        if interval.low > 0 or interval.high < 0:
            return n
    return most


@pytest.mark.parametrize("effect", [0.02, 0.04, 0.08])
def test_about_so_many_blocks_are_really_needed(effect: float) -> None:
    random = np.random.default_rng(1)
    estimated = blocks_for(NoiseSpread(1000, 2 * SD**2), 100 * effect).blocks
    assert estimated is not None
    needed = np.median([blocks_until_seen(effect, random, 10 * estimated) for _ in range(300)])
    # A study looks after every block, and often sees the effect a little earlier than told.
    assert 0.6 * estimated <= needed <= 1.1 * estimated


def test_the_spread_of_neighbours_is_found() -> None:
    random = np.random.default_rng(2)
    variances = [measure_spread(np.exp(random.normal(0, SD, 30))).variance for _ in range(2000)]
    assert np.mean(variances) == pytest.approx(2 * SD**2, rel=0.02)


def test_drift_hardly_adds_to_the_spread() -> None:
    random = np.random.default_rng(3)
    noise = random.normal(0, SD, 40)
    drift = np.linspace(0, 0.2, 40)
    drifted, still = measure_spread(np.exp(noise + drift)), measure_spread(np.exp(noise))
    assert drifted.variance < 1.3 * still.variance
    assert np.var(noise + drift) > 5 * np.var(noise)


def test_the_range_holds_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(4)
    truth = blocks_for(NoiseSpread(1000, 2 * SD**2), 2).blocks
    assert truth is not None
    estimates = [blocks_for(measure_spread(np.exp(random.normal(0, SD, 30))), 2) for _ in range(1000)]
    held = sum((needed.low or 0) <= truth <= (needed.high or 10**9) for needed in estimates)
    assert 860 <= held <= 940


@given(st.floats(1e-8, 0.1), st.floats(0.5, 50))
def test_an_effect_that_takes_n_blocks_is_about_what_n_blocks_show(variance: float, effect: float) -> None:
    spread = NoiseSpread(30, variance)
    blocks = blocks_for(spread, effect).blocks
    if blocks is None or blocks <= 4:
        return
    effect_shown, shown_before = effect_after(spread, blocks), effect_after(spread, blocks - 1)
    assert effect_shown is not None
    assert effect_shown <= effect * (1 + 1e-9)
    assert shown_before is None or shown_before >= effect * (1 - 1e-9)


def test_more_noise_needs_more_blocks_and_too_much_is_said() -> None:
    blocks = [blocks_for(NoiseSpread(30, 2 * sd**2), 2).blocks for sd in (0.001, 0.01, 0.05, 5.0)]
    assert blocks[0] is not None
    assert blocks[0] < (blocks[1] or 0) < (blocks[2] or 0)
    assert blocks[3] is None
    assert effect_after(NoiseSpread(30, 1.0), 2) is None


def test_a_real_drift_is_told_and_noise_is_none() -> None:
    random = np.random.default_rng(5)
    times = np.arange(30.0)
    noise = [drift_percent(times, np.exp(random.normal(0, SD, 30))) for _ in range(300)]
    assert sum(drift != 0 for drift in noise) < 10
    falling = np.exp(random.normal(0, SD, 30) - 0.005 * times)
    assert drift_percent(times, falling) == pytest.approx(-13.5, abs=4)
    assert drift_percent(times, np.ones(30)) == 0

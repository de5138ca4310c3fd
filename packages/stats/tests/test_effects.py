from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ajuste_stats.effects import effect, margin
from ajuste_stats.pairs import Pairs
from ajuste_stats.sign_intervals import sign_interval
from ajuste_stats.terms import Measure

POSITIVE = st.floats(1e-3, 1e6)


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=1, max_size=20))
def test_a_ratio_is_the_geometric_mean_of_the_ratios_within_blocks(values: list[tuple[float, float]]) -> None:
    table = np.array(values)
    metric = Measure(unit="s", direction="lower")
    estimated = effect(Pairs(table[:, 0], table[:, 1]), metric, 0.05)
    assert estimated is not None
    assert estimated.scale == "ratio"
    assert estimated.estimate == pytest.approx(stats.gmean(table[:, 1] / table[:, 0]))


def test_a_difference_is_the_mean_of_the_differences(switches: Measure) -> None:
    estimated = effect(Pairs(np.array([10.0, 20, 30]), np.array([11.0, 19, 36])), switches, 0.05)
    assert estimated is not None
    assert (estimated.scale, estimated.estimate, estimated.fell_back) == ("difference", 2.0, False)


def test_pairing_takes_what_a_block_shares_out_of_the_interval(elapsed: Measure) -> None:
    """Blocks differ by a factor of two, the configurations within a block by exactly 10 %."""
    baseline = np.array([1.0, 2.0, 1.5, 1.2, 1.9, 1.1])
    estimated = effect(Pairs(baseline, 1.1 * baseline), elapsed, 0.05)
    assert estimated is not None
    assert estimated.low == pytest.approx(1.1, rel=1e-6)
    assert estimated.high == pytest.approx(1.1, rel=1e-6)
    assert estimated.low != estimated.high


def test_a_zero_makes_a_ratio_a_difference_and_says_so(elapsed: Measure) -> None:
    estimated = effect(Pairs(np.array([0.0, 2, 3]), np.array([1.0, 3, 4])), elapsed, 0.05)
    assert estimated is not None
    assert (estimated.scale, estimated.estimate, estimated.fell_back) == ("difference", 1.0, True)


def test_identical_counts_are_uncertain_by_the_rounding_of_both(switches: Measure) -> None:
    estimated = effect(Pairs(np.full(6, 8.0), np.full(6, 8.0)), switches, 0.05)
    assert estimated is not None
    assert math.sqrt(2 / 12) / 2 < estimated.interval.half_width < 1


def test_without_a_resolution_identical_values_are_known_to_their_last_digit() -> None:
    metric = Measure(unit="s", direction="lower", resolution=0)
    estimated = effect(Pairs(np.full(6, 8.0), np.full(6, 8.0)), metric, 0.05)
    assert estimated is not None
    assert (estimated.step, estimated.rounding) == (1.0, pytest.approx(1 / 8, rel=0.01))
    assert estimated.interval.half_width > estimated.rounding


def test_no_pair_no_effect(elapsed: Measure) -> None:
    assert effect(Pairs(np.array([]), np.array([])), elapsed, 0.05) is None


def test_the_zone_of_equivalence_is_symmetric_for_ratios_and_relative_for_differences(
    elapsed: Measure, switches: Measure
) -> None:
    ratio = effect(Pairs(np.array([2.0, 2.0]), np.array([2.0, 2.1])), elapsed, 0.05)
    difference = effect(Pairs(np.array([200.0, 300.0]), np.array([2.0, 2.1])), switches, 0.05)
    assert ratio is not None
    assert difference is not None
    assert math.exp(margin(ratio, 0.05)) == pytest.approx(1.05)
    assert math.exp(-margin(ratio, 0.05)) == pytest.approx(1 / 1.05)
    assert margin(difference, 0.05) == pytest.approx(12.5)


def test_without_both_orders_an_interval_is_unbounded_because_a_drift_looks_like_an_effect(elapsed: Measure) -> None:
    baseline, other = np.array([1.0, 1.01, 0.99, 1.0] * 2), np.array([1.2, 1.22, 1.19, 1.2] * 2)
    always = effect(Pairs(baseline, other, np.full(8, True)), elapsed, 0.05)
    mixed = effect(Pairs(baseline, other, np.array([True, True, False, True] * 2)), elapsed, 0.05)
    reversed_order = effect(Pairs(baseline, other, np.array([False, False, True, False] * 2)), elapsed, 0.05)
    unordered = effect(Pairs(baseline, other), elapsed, 0.05)
    assert always is not None
    assert mixed is not None
    assert always.same_order
    assert (always.low, always.high) == (None, None)
    assert always.estimate == mixed.estimate
    assert mixed.interval.low > 0
    assert reversed_order is not None
    assert mixed.interval == reversed_order.interval
    assert unordered is not None
    assert unordered.interval.low > 0
    assert (mixed.of_seeds, unordered.of_seeds) == (False, True)


def test_delays_of_one_configuration_only_make_the_interval_as_wide_as_that_of_normal_noise(elapsed: Measure) -> None:
    """Exchanged, the two would not have given the same difference with the other sign."""
    random = np.random.default_rng(7)
    wrong = plain = 0
    for _ in range(60):
        baseline = np.exp(random.normal(0, 0.01, 40))
        delays = np.log1p(0.5 * random.exponential(1, 40)) - 0.3614
        other = np.exp(random.normal(0, 0.01, 40) + delays)
        looks = [effect(Pairs(baseline[:n], other[:n]), elapsed, 0.05) for n in (7, 12, 20, 40)]
        wrong += any(look is not None and not look.interval.low <= 0 <= look.interval.high for look in looks)
        by_signs = [sign_interval(np.log(other[:n] / baseline[:n]), alpha=0.05) for n in (7, 12, 20, 40)]
        plain += any(not interval.low <= 0 <= interval.high for interval in by_signs)
    assert wrong <= 0.07 * 60
    assert wrong <= plain

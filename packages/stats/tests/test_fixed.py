"""Against scipy, which is another implementation of the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from ajuste_stats.fixed_samples import log_mean_contrast, mean_contrast, paired, unpaired
from ajuste_stats.ranks import rank_p_value

values = st.lists(st.floats(0.001, 1e6), min_size=2, max_size=30).map(np.array)


def differ(table: np.ndarray) -> bool:
    return bool(np.std(table) > 1e-9 * np.max(np.abs(table)))


@given(values, values)
def test_the_unpaired_interval_is_that_of_scipy(baseline: np.ndarray, other: np.ndarray) -> None:
    assume(differ(baseline) and differ(other))
    theirs = stats.ttest_ind(other, baseline, equal_var=False)
    ours = unpaired(baseline, other)
    low, high = theirs.confidence_interval(0.95)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-9, abs=1e-12)
    assert ours.difference - ours.half_width(0.05) == pytest.approx(low, rel=1e-9, abs=1e-9 * (high - low))
    assert ours.difference + ours.half_width(0.05) == pytest.approx(high, rel=1e-9, abs=1e-9 * (high - low))


@given(st.data())
def test_the_paired_interval_is_that_of_scipy(data: st.DataObject) -> None:
    baseline = data.draw(values)
    other = np.array(data.draw(st.lists(st.floats(0.001, 1e6), min_size=len(baseline), max_size=len(baseline))))
    assume(differ(other - baseline))
    theirs = stats.ttest_rel(other, baseline)
    ours = paired(baseline, other)
    low, high = theirs.confidence_interval(0.99)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-9, abs=1e-12)
    assert ours.difference - ours.half_width(0.01) == pytest.approx(low, rel=1e-9, abs=1e-9 * (high - low))


def test_summaries_say_the_same_as_the_values_that_they_are_of() -> None:
    baseline, other = np.array([3.0, 4.0, 3.5, 3.7]), np.array([4.1, 4.4, 5.0])
    summary = mean_contrast(
        baseline.mean(),
        baseline.std(ddof=1) / 2,
        len(baseline),
        other.mean(),
        other.std(ddof=1) / math.sqrt(3),
        len(other),
    )
    direct = unpaired(baseline, other)
    assert summary.p_value == pytest.approx(direct.p_value, rel=1e-12)
    theirs = stats.ttest_ind_from_stats(
        other.mean(), other.std(ddof=1), 3, baseline.mean(), baseline.std(ddof=1), 4, equal_var=False
    )
    assert summary.p_value == pytest.approx(theirs.pvalue, rel=1e-12)


def test_the_delta_method_covers_a_known_ratio() -> None:
    """1,000 pairs of samples of 10 with a true ratio of 1.1 and 5 % of noise: about 95 % of the intervals hold it."""
    source = np.random.default_rng(1)
    inside = 0
    for _ in range(1000):
        baseline, other = source.normal(100, 5, 10), source.normal(110, 5.5, 10)
        contrast = log_mean_contrast(
            baseline.mean(), baseline.std(ddof=1) / 10**0.5, 10, other.mean(), other.std(ddof=1) / 10**0.5, 10
        )
        inside += abs(contrast.difference - math.log(1.1)) <= contrast.half_width(0.05)
    assert 0.93 < inside / 1000 < 0.97


def test_too_few_values_say_nothing() -> None:
    for contrast in (unpaired(np.array([1.0]), np.array([2.0, 3.0])), paired(np.array([1.0]), np.array([2.0]))):
        assert math.isinf(contrast.half_width(0.05))
        assert math.isnan(contrast.p_value)


def test_values_without_any_spread_leave_no_room() -> None:
    same = unpaired(np.array([2.0, 2.0]), np.array([2.0, 2.0]))
    assert (same.half_width(0.05), same.p_value) == (0.0, 1.0)
    assert unpaired(np.array([2.0, 2.0]), np.array([3.0, 3.0])).p_value == 0.0


def test_ranks_are_those_of_scipy() -> None:
    random = np.random.default_rng(5)
    for _ in range(20):
        first, second = random.integers(0, 12, 15).astype(float), random.integers(3, 15, 11).astype(float)
        expected = stats.mannwhitneyu(first, second, method="asymptotic").pvalue
        assert rank_p_value(first, second) == pytest.approx(expected)
    assert rank_p_value(np.ones(9), np.ones(9)) == 1

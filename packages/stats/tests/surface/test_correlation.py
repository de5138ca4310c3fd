"""Rank correlations over the configurations of a study."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from ajuste_stats.ranks import correlation_interval, rank_correlation


def test_as_scipy_has_it() -> None:
    first, second = np.random.default_rng(3).integers(0, 9, (2, 30)).astype(float)
    assert rank_correlation(first, second) == pytest.approx(spearmanr(first, second).statistic)


def test_the_interval_has_the_true_correlation_as_often_as_it_says() -> None:
    random = np.random.default_rng(4)
    truth = 6 / np.pi * np.arcsin(0.6 / 2)  # Spearman's of a normal pair with Pearson's 0.6
    hits = 0
    for _ in range(400):
        first = random.normal(size=30)
        second = 0.6 * first + 0.8 * random.normal(size=30)
        low, high = correlation_interval(rank_correlation(first, second), 30, 0.05)
        hits += low <= truth <= high
    assert hits >= 372  # 95 % of 400, less twice the standard deviation

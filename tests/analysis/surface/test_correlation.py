"""Rank correlations over the configurations of a study."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from ajuste.analysis.surface.surfaces import correlations
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Summary
from ajuste_stats.ranks import correlation_interval, rank_correlation

ELAPSED, SWITCHES, FAULTS = (Metric(name=name, title=name, unit="", direction="none") for name in "esf")


def configuration(name: str, **means: float) -> Measured:
    rest = dict(n=1, median=None, sd=None, sem=None, minimum=None, maximum=None)
    return Measured(name=name, levels={}, metrics={k: Summary(mean=v, **rest) for k, v in means.items()})


def test_as_scipy_has_it() -> None:
    first, second = np.random.default_rng(3).integers(0, 9, (2, 30)).astype(float)
    assert rank_correlation(first, second) == pytest.approx(spearmanr(first, second).statistic)


def test_what_rises_together_and_what_does_not_vary() -> None:
    measured = [configuration(f"c{n}", e=n**2, s=100 - n, f=7) for n in range(10)]
    (only,) = correlations(measured, [ELAPSED], [ELAPSED, SWITCHES, FAULTS], 0.95)
    assert (only.metric, only.other, only.rho, only.n) == ("e", "s", pytest.approx(-1), 10)
    assert only.low <= only.rho <= only.high < -0.9


def test_few_configurations_tell_nothing() -> None:
    assert correlations([configuration(f"c{n}", e=n, s=n) for n in range(5)], [ELAPSED], [SWITCHES], 0.95) == ()


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

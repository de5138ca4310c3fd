"""Boots as replicates: against statsmodels, and that verdicts hold for boots that were not measured."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ajuste_stats.random_effects import variance_components


def test_variances_are_those_of_statsmodels() -> None:
    pd = pytest.importorskip("pandas")
    models = pytest.importorskip("statsmodels.formula.api")
    random = np.random.default_rng(3)
    boot = np.repeat(np.arange(12), random.integers(2, 7, 12))
    values = random.normal(0, 0.7, 12)[boot] + random.normal(0, 1, len(boot))
    within, between = variance_components(values, boot)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = models.mixedlm("value ~ 1", pd.DataFrame({"value": values, "boot": boot}), groups="boot").fit(reml=True)
    assert within == pytest.approx(fit.scale, rel=1e-3)
    assert between == pytest.approx(float(fit.cov_re.iloc[0, 0]), rel=1e-3)


def test_equal_numbers_give_the_estimates_of_the_analysis_of_variance() -> None:
    table = np.random.default_rng(4).normal(0, 1, (8, 5)) + np.arange(8)[:, None]
    within, between = variance_components(table.ravel(), np.repeat(np.arange(8), 5))
    mean_square = 5 * np.var(table.mean(axis=1), ddof=1)
    assert within == pytest.approx(np.mean(np.var(table, axis=1, ddof=1)))
    assert between == pytest.approx((mean_square - within) / 5)


def test_boots_that_do_not_differ_have_no_variance_between_them() -> None:
    alike = np.tile([1.0, 2.0, 3.0], 6)
    assert variance_components(alike, np.repeat(np.arange(6), 3))[1] == 0

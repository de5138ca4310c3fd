"""Machines as a sample, and what tells them apart: against published figures, another program, and a known truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from ajuste_stats.random_effects import pool_effects, pooled_variances

BCG = np.array(
    [
        *((4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619), (33, 5036, 47, 5761)),
        *((180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892), (29, 7470, 45, 7232)),
        *((17, 1699, 65, 1600), (186, 50448, 141, 27197), (5, 2493, 3, 2338), (27, 16886, 29, 17825)),
    ],
    float,
)
"""Thirteen trials of a vaccine: ill and well with it, ill and well without it (Colditz and others, JAMA 271, 1994)."""


def published() -> tuple[Any, Any]:
    """Log risk ratios of those trials, and their variances."""
    ill, well, other_ill, other_well = BCG.T
    ratios = np.log(ill / (ill + well)) - np.log(other_ill / (other_ill + other_well))
    return ratios, 1 / ill - 1 / (ill + well) + 1 / other_ill - 1 / (other_ill + other_well)


def test_mean_and_spread_are_those_of_a_published_example() -> None:
    """R's metafor 4.0, ``rma(yi, vi, data = dat.bcg, method = "DL")``: as its manual prints them."""
    pooled = pool_effects(*published())
    assert pooled.mean == pytest.approx(-0.7141, abs=5e-5)
    assert pooled.variance == pytest.approx(0.3088, abs=5e-5)


def test_mean_spread_and_interval_are_those_of_statsmodels() -> None:
    meta = pytest.importorskip("statsmodels.stats.meta_analysis")
    effects, variances = published()
    theirs = meta.combine_effects(effects, variances, method_re="dl", use_t=True)
    pooled = pool_effects(effects, variances)
    assert pooled.mean == pytest.approx(theirs.mean_effect_re)
    assert pooled.variance == pytest.approx(theirs.tau2)
    assert pooled.error == pytest.approx(theirs.sd_eff_w_re_hksj)
    half = stats.t.ppf(0.975, 12) * theirs.sd_eff_w_re_hksj
    assert pooled.interval(0.05) == pytest.approx((theirs.mean_effect_re - half, theirs.mean_effect_re + half))


def test_a_new_machine_is_less_certain_than_the_mean() -> None:
    pooled = pool_effects(*published())
    (low, high), (new_low, new_high) = pooled.interval(0.05), pooled.prediction(0.05)
    assert new_low < low < high < new_high
    assert new_high - pooled.mean == pytest.approx(
        stats.t.ppf(0.975, 12) * np.hypot(pooled.error, pooled.variance**0.5)
    )


def test_a_machine_with_one_block_has_the_noise_of_the_others() -> None:
    values = [np.array([1.0, 3.0]), np.array([2.0]), np.array([4.0, 6.0])]
    assert pooled_variances(values) == pytest.approx([1.0, 2.0, 1.0])
    assert pooled_variances([np.array([1.0]), np.array([2.0])]) is None

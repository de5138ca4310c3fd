"""Boots as replicates: against statsmodels, and that verdicts hold for boots that were not measured."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from ajuste.analysis.boots import BootJudgement, BootValue, BootVariance, judge_boots, random_effects, values_a_boot
from ajuste.model.metric import Metric

LATENCY = Metric(name="latency", title="latency", unit="s", direction="lower")


def measured(
    between: float, effect: float, *, boots: int = 12, each: int = 4, shared: bool = False, seed: int = 0
) -> list[BootValue]:
    """Blocks of a boot for each of two configurations; or boots that both share."""
    random = np.random.default_rng(seed)
    values: list[BootValue] = []
    for block in range(boots):
        shift = random.normal(0, between)
        for place, name in enumerate(random.permutation(["default", "other"])):
            shift = shift if shared else random.normal(0, between)
            for number in range(each):
                log = shift + effect * (name == "other") + random.normal(0, 0.01)
                boot, own = (block, block * each + number) if shared else (2 * block + place, block)
                values.append(BootValue(boot, str(name), own, math.exp(log)))
    return sorted(values, key=lambda one: one.boot)


def judged(values: list[BootValue], smallest_effect: float = 0.02) -> BootJudgement:
    return judge_boots(
        values, LATENCY, baseline="default", configurations=["default", "other"], smallest_effect=smallest_effect
    )


def test_variances_are_those_of_statsmodels() -> None:
    pd = pytest.importorskip("pandas")
    models = pytest.importorskip("statsmodels.formula.api")
    random = np.random.default_rng(3)
    boot = np.repeat(np.arange(12), random.integers(2, 7, 12))
    values = random.normal(0, 0.7, 12)[boot] + random.normal(0, 1, len(boot))
    within, own = random_effects(values, boot)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = models.mixedlm("value ~ 1", pd.DataFrame({"value": values, "boot": boot}), groups="boot").fit(reml=True)
    assert within == pytest.approx(fit.scale, rel=1e-3)
    assert own == pytest.approx(float(fit.cov_re.iloc[0, 0]), rel=1e-3)


def test_equal_numbers_give_the_estimates_of_the_analysis_of_variance() -> None:
    table = np.random.default_rng(4).normal(0, 1, (8, 5)) + np.arange(8)[:, None]
    within, between = random_effects(table.ravel(), np.repeat(np.arange(8), 5))
    mean_square = 5 * np.var(table.mean(axis=1), ddof=1)
    assert within == pytest.approx(np.mean(np.var(table, axis=1, ddof=1)))
    assert between == pytest.approx((mean_square - within) / 5)


def test_boots_that_do_not_differ_have_no_variance_between_them() -> None:
    alike = np.tile([1.0, 2.0, 3.0], 6)
    assert random_effects(alike, np.repeat(np.arange(6), 3))[1] == 0


def test_an_effect_is_found_and_boots_that_differ_are_said() -> None:
    found = judged(measured(0.02, -0.1))
    (verdict,) = found.verdicts
    assert (verdict.verdict, verdict.blocks) == ("improves", 12)
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < math.exp(-0.1) < verdict.high
    assert any(one.startswith("other differs from boot to boot by") for one in found.says)
    assert any("too narrow" in one for one in found.says)
    own = next(one for one in found.variances if one.configuration == "default")
    assert own.share is not None
    assert own.share > 0.5


def test_at_most_5_percent_find_a_difference_between_equals_where_boots_scatter() -> None:
    runs, false, naive = 60, 0, 0
    for seed in range(runs):
        values = measured(0.03, 0.0, boots=8, each=3, seed=seed)
        looks = (judged([one for one in values if one.block < end], 0.001) for end in (4, 6, 8))
        false += any(one.verdicts[0].verdict in ("improves", "worsens") for one in looks)
        sides = [[math.log(one.value) for one in values if one.configuration == name] for name in ("default", "other")]
        naive += stats.ttest_ind(*sides).pvalue < 0.05
    assert false <= 0.05 * runs
    assert naive > 0.15 * runs


def test_configurations_that_share_boots_are_compared_within_them() -> None:
    values = measured(0.2, -0.05, shared=True)
    (verdict,) = judged(values).verdicts
    assert (verdict.verdict, verdict.blocks) == ("improves", 12)
    of_effect = [one for one in judged(values).variances if one.of_effect]
    assert [one.boots for one in of_effect] == [12]


def test_blocks_that_were_measured_in_the_same_two_boots_are_one_unit() -> None:
    values = [
        BootValue(boot, name, block, 1.0 + 0.1 * boot + 0.01 * block)
        for boot, name in enumerate(("default", "other"))
        for block in range(10)
    ]
    (verdict,) = judged(values).verdicts
    assert (verdict.verdict, verdict.blocks) == ("undecided", 1)


def test_boots_always_in_the_same_order_decide_nothing() -> None:
    values = [
        BootValue(2 * block + place, name, block, 1.0 + place + 0.01 * block)
        for block in range(12)
        for place, name in enumerate(("default", "other"))
    ]
    (verdict,) = judged(values).verdicts
    assert verdict.verdict == "undecided"
    assert "booted first in each" in verdict.reason


def test_without_boots_of_both_nothing_is_compared() -> None:
    found = judged([BootValue(0, "default", 0, 1.0)])
    assert found.verdicts[0].reason == "no boots of both the baseline and this configuration belong together yet"
    assert found.variances[0] == BootVariance("default", "ratio", 1, 1)


def test_boots_that_cost_more_or_scatter_less_are_worth_more_values_each() -> None:
    variance = BootVariance("a", "ratio", 10, 50, within_sd=0.03, between_sd=0.01)
    assert values_a_boot(variance, boot_s=100, value_s=4) == 15
    assert values_a_boot(variance, boot_s=1, value_s=100) == 1
    assert values_a_boot(BootVariance("a", "ratio", 1, 5), boot_s=1, value_s=1) is None

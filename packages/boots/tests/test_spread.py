"""Boots as replicates: against statsmodels, and that verdicts hold for boots that were not measured."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats
from tests.analysis.conftest import build_trials

from ajuste.analysis.pairs import by_round, clean_trials
from ajuste.analysis.verdict import judge
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration
from ajuste_boots.model import BootSpread
from ajuste_boots.spread import BootValue, boot_pairs, scatter

LATENCY = Metric(name="latency", title="latency", unit="s", direction="lower")

SIDES = [
    Configuration(name=name, levels={"boot.word": name}, baseline=name == "default") for name in ("default", "other")
]


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
                boot, group = (block, block * each + number) if shared else (2 * block + place, block)
                values.append(BootValue(boot, str(name), group, math.exp(log)))
    return sorted(values, key=lambda value: value.boot)


def scattered(values: list[BootValue]) -> tuple[list[BootSpread], list[str]]:
    return scatter(values, LATENCY, baseline="default", configurations=["default", "other"])


def test_boots_that_differ_are_said() -> None:
    spreads, sentences = scattered(measured(0.02, -0.1))
    assert any(sentence.startswith("other differs from boot to boot by") for sentence in sentences)
    assert any("too narrow" in sentence for sentence in sentences)
    default = next(spread for spread in spreads if spread.configuration == "default")
    assert default.share is not None
    assert default.share > 0.5


def test_at_most_5_percent_find_a_difference_between_equals_where_boots_scatter() -> None:
    runs, false, naive = 60, 0, 0
    for seed in range(runs):
        values = measured(0.03, 0.0, boots=8, each=3, seed=seed)
        sides = {
            name: [value.value for value in values if value.configuration == name] for name in ("default", "other")
        }
        made = build_trials(sides, LATENCY.name)
        looks = (
            judge(
                SIDES,
                by_round(clean_trials([trial for trial in made if trial.slot.block < 3 * end]), 3),
                [LATENCY],
                smallest_effect=0.001,
            )
            for end in (4, 6, 8)
        )
        false += any(verdict.verdict in ("improves", "worsens") for (verdict,) in looks)
        naive += stats.ttest_ind(*(np.log(sample) for sample in sides.values())).pvalue < 0.05
    assert false <= 0.05 * runs
    assert naive > 0.15 * runs


def test_configurations_that_share_boots_are_compared_within_them() -> None:
    spreads, _ = scattered(measured(0.2, -0.05, shared=True))
    assert [spread.boots for spread in spreads if spread.of_effect] == [12]


def test_blocks_that_were_measured_in_the_same_two_boots_are_one_unit() -> None:
    values = [
        BootValue(boot, name, block, 1.0 + 0.1 * boot + 0.01 * block)
        for boot, name in enumerate(("default", "other"))
        for block in range(10)
    ]
    assert len(boot_pairs(values, "default", "other", "ratio")) == 1


def test_without_boots_of_both_nothing_is_compared() -> None:
    spreads, sentences = scattered([BootValue(0, "default", 0, 1.0)])
    assert spreads[0] == BootSpread(configuration="default", metric="latency", scale="ratio", boots=1, values=1)
    assert sentences == []

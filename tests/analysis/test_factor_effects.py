"""Effects of factors against an independent implementation, and in simulations with a known answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from ajuste.analysis.answer import factor_answer
from ajuste.analysis.factor_effects import Effects, factor_effects
from ajuste.design.combinations import Combine, combinations
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Factor, Slot, Trial
from ajuste.model.verdict import FactorEffect

ELAPSED = Metric(name="elapsed", title="elapsed time", unit="s", direction="lower")
COUNT = Metric(name="count", title="count", unit="", direction="lower", scale="difference", resolution=1)
THREE = [
    Factor(name="a", levels=("a0", "a1"), baseline="a0"),
    Factor(name="b", levels=("b0", "b1", "b2"), baseline="b1"),
    Factor(name="c", levels=("c0", "c1"), baseline="c1"),
]
TWELVE = [Factor(name=f"f{place}", levels=("off", "on"), baseline="off") for place in range(12)]


def made(factors: Sequence[Factor], combine: Combine) -> list[Configuration]:
    baseline = tuple(factor.baseline for factor in factors)
    return [
        Configuration(
            name=" ".join(levels),
            levels={factor.name: level for factor, level in zip(factors, levels, strict=True)},
            baseline=levels == baseline,
        )
        for levels in combinations(factors, combine)
    ]


def play(
    configurations: Sequence[Configuration], blocks: int, value: Callable[[Configuration, int], float], metric: Metric
) -> list[Trial]:
    return [
        Trial(
            slot=Slot(block=block, position=place, configuration=configuration.name, seed=1),
            status="ok",
            metrics={metric.name: value(configuration, block)},
        )
        for block in range(blocks)
        for place, configuration in enumerate(configurations)
    ]


def work_out(
    factors: Sequence[Factor],
    configurations: Sequence[Configuration],
    trials: Sequence[Trial],
    metric: Metric,
    *,
    screening: bool = False,
    smallest_effect: float = 0.05,
) -> Effects:
    return factor_effects(
        factors, configurations, trials, [metric], confidence=0.95, smallest_effect=smallest_effect, screening=screening
    )


def of(effects: Effects, subject: str) -> FactorEffect:
    return next(effect for effect in effects.findings if effect.subject == subject)


def by_least_squares(trials: Sequence[Trial], metric: Metric, effect: FactorEffect) -> float:
    """The coefficient in a linear model with all interactions: factors of the effect coded against their baselines, the
    others so that their levels add up to 0.
    """
    import pandas as pd
    import statsmodels.formula.api as smf  # it takes two seconds to load, in each process that collects tests

    rows = [
        {**dict(zip("abc", trial.slot.configuration.split(), strict=True)), "block": trial.slot.block}
        | {"y": math.log(v) if metric.scale == "ratio" else v}
        for trial in trials
        for v in trial.metrics.values()
    ]
    data = pd.DataFrame(rows)
    against = dict(zip(effect.factors, effect.against, strict=True))
    coded = [f"C({n}, Treatment('{against[n]}'))" if n in against else f"C({n}, Sum)" for n in "abc"]
    fitted = smf.ols(f"y ~ {' * '.join(coded)} + C(block)", data).fit()
    terms = [
        f"C({name}, Treatment('{old}'))[T.{new}]"
        for name, old, new in zip(effect.factors, effect.against, effect.levels, strict=True)
    ]
    return float(fitted.params[":".join(terms)])


@pytest.mark.parametrize("metric", [ELAPSED, COUNT])
def test_effects_and_interactions_are_those_of_a_linear_model(metric: Metric) -> None:
    random = np.random.default_rng(3)
    configurations = made(THREE, "all")
    trials = play(configurations, 6, lambda *_: float(random.integers(50, 150)), metric)
    findings = work_out(THREE, configurations, trials, metric).findings
    assert [effect.kind for effect in findings] == 4 * ["main"] + 5 * ["interaction"]
    for effect in findings:
        estimate = math.log(effect.estimate or 0) if effect.scale == "ratio" else effect.estimate
        assert estimate == pytest.approx(by_least_squares(trials, metric, effect), abs=1e-9)
        assert effect.blocks == 6


def test_an_interaction_is_told_from_main_effects() -> None:
    factors = THREE[:2]
    random = np.random.default_rng(5)

    def value(configuration: Configuration, block: int) -> float:
        both = configuration.levels == {"a": "a1", "b": "b2"}
        return (
            (1.1 if configuration.levels["a"] == "a1" else 1)
            * (1.2 if both else 1)
            * math.exp(random.normal(block, 0.01))
        )

    configurations = made(factors, "all")
    effects = work_out(factors, configurations, play(configurations, 25, value, ELAPSED), ELAPSED)
    interaction = of(effects, "a a0 → a1 × b b1 → b2")
    assert (interaction.verdict, interaction.estimate) == ("differs", pytest.approx(1.2, rel=0.02))
    assert interaction.reason.startswith("with b = b2 the effect of a is higher by")
    other = of(effects, "a a0 → a1 × b b1 → b0")
    assert (other.verdict, other.estimate) == ("equivalent", pytest.approx(1, rel=0.02))
    assert of(effects, "a a0 → a1").estimate == pytest.approx(1.1 * 1.2 ** (1 / 3), rel=0.01)
    cells = {cell.levels: cell for cell in effects.cells}
    assert len(cells) == 6
    assert cells["a1", "b2"].estimate == pytest.approx(1.32, rel=0.02)
    assert (cells["a0", "b1"].low, cells["a0", "b1"].high) == (1, 1)


def test_only_complete_blocks_count_and_without_any_nothing_is_known() -> None:
    configurations = made(THREE, "all")
    trials = play(configurations, 4, lambda configuration, block: 1.0 + block, ELAPSED)
    spoilt = [t.model_copy(update={"status": "flagged"}) if t.slot.block == 2 else t for t in trials[:-1]]
    assert {effect.blocks for effect in work_out(THREE, configurations, spoilt, ELAPSED).findings} == {2}
    none = [trial for trial in trials if trial.slot.configuration != configurations[0].name]
    for effect in work_out(THREE, configurations, none, ELAPSED).findings:
        assert (effect.verdict, effect.estimate, effect.blocks) == ("undecided", None, 0)


def test_a_metric_that_can_be_0_is_compared_by_differences() -> None:
    configurations = made(THREE, "all")
    trials = play(configurations, 9, lambda configuration, block: float(configuration.levels["a"] == "a1"), ELAPSED)
    main_effect = of(work_out(THREE, configurations, trials, ELAPSED), "a a0 → a1")
    assert (main_effect.scale, main_effect.estimate) == ("difference", 1)


def screen(seed: int, active: dict[str, float], noise: float = 0.01, blocks: int = 12) -> Effects:
    random = np.random.default_rng(seed)
    configurations = made(TWELVE, "screening")

    def value(configuration: Configuration, block: int) -> float:
        on = {name for name, level in configuration.levels.items() if level == "on"}
        interaction = 0.08 if {"f3", "f5"} <= on else 0.0
        return math.exp(sum(active[name] for name in on & set(active)) + interaction + random.normal(block, noise))

    trials = play(configurations, blocks, value, ELAPSED)
    return work_out(TWELVE, configurations, trials, ELAPSED, screening=True, smallest_effect=0.02)


def test_screening_finds_the_active_factors_and_clears_the_others_in_spite_of_an_interaction() -> None:
    active = {"f0": 0.10, "f4": -0.05, "f9": 0.03}
    wrong, truths = 0, {f"f{place}": active.get(f"f{place}", 0.0) for place in range(12)}
    truths["f3"] += 0.04  # half of what both together add
    truths["f5"] += 0.04
    for seed in range(20):
        effects = screen(seed, active)
        words = {effect.factors[0]: effect.verdict for effect in effects.findings}
        assert {name: words[name] for name in active} == {"f0": "worsens", "f4": "improves", "f9": "worsens"}
        assert all(words[name] == "equivalent" for name, truth in truths.items() if truth == 0)
        wrong += any(not (e.low or 0) <= math.exp(truths[e.factors[0]]) <= (e.high or 0) for e in effects.findings)
    assert wrong <= 3  # 5 % of 20 is 1; more than 3 would be seen in 2 of 100 such tests


def test_the_answer_names_what_matters_and_counts_the_rest() -> None:
    effects = screen(1, {"f0": 0.10, "f4": -0.05})
    answer = factor_answer([ELAPSED], effects.findings, 0.02)
    assert answer.startswith("Elapsed time: of 12 factors, each averaged over the others, 4 matter: f0 off → on ")
    assert "f0 off → on (+10." in answer
    assert answer.endswith("8 do not, within ±2 %.")
    assert all(effect.deciding for effect in effects.findings)
    assert not effects.cells

"""The winner, what cannot be distinguished from it, and the ratios, against the truth and against scipy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from ajuste.analysis.pairs import clean_trials
from ajuste.analysis.ranking import MOST, rankings
from ajuste.analysis.verdict import Family, family, judge
from ajuste.design.blocks import members
from ajuste.design.stopping import reviews
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Slot, Trial
from ajuste.model.verdict import AcrossMachines, Ranking, Verdict
from ajuste_stats.sign_intervals import SHORT
from tiers import slow

ELAPSED = Metric(name="elapsed", title="Elapsed time", unit="s", direction="lower")
LEVELS = ("1", "2", "3", "4")

Ranked = Callable[..., Ranking]


@pytest.fixture
def ranked(configurations: Any, trials: Any) -> Ranked:
    def build(values: Mapping[str, NDArray[np.float64]], metric: Metric = ELAPSED, **more: Any) -> Ranking:
        made = configurations(*(name.removeprefix("knob=") for name in values))
        clean = clean_trials(trials(values, metric=metric.column))
        (ranking,) = rankings(made, clean, [metric], family(made, [metric], 0.95), smallest_effect=0.02, **more)
        return ranking

    return build


def simulated(
    generator: np.random.Generator, means: tuple[float, ...], blocks: int, spread: float
) -> dict[str, NDArray[np.float64]]:
    """Return values whose part that blocks share is ten times the noise: only pairs distinguish configurations."""
    common = generator.normal(0, 10 * spread, blocks)
    noise = generator.normal(0, spread, (len(means), blocks))
    return {
        f"knob={level}": mean * np.exp(common + deviations)
        for level, mean, deviations in zip(LEVELS, means, noise, strict=False)
    }


def interval_of(values: NDArray[np.float64], alpha: float) -> tuple[float, float]:
    """The means that the evidence (docs/explanation/statistics.md) does not refute, by bisection."""
    running = np.arange(1, len(values) + 1)

    def log_evidence(mean: float) -> float:
        away = values - mean
        quartile = [np.quantile(np.abs(away[:n]), 0.25, method="lower") for n in running]
        evidence = 0.0
        plain, clipped = away / np.sqrt(np.cumsum(away**2) / running), np.clip(away / quartile, -1, 1)
        for x, share in ((plain, 2 / 3), (clipped, 1 / 3)):
            bets = [
                np.prod(np.exp(sign * slope * x) / np.cosh(slope * x)) for slope in SHORT.slopes for sign in (1, -1)
            ]
            evidence += share * float(np.repeat(SHORT.weights / 2, 2) @ bets)
        return math.log(evidence)

    def gap(mean: float) -> float:
        return log_evidence(mean) + math.log(alpha)

    middle, far = float(np.mean(values)), 100 * float(np.std(values))
    low = optimize.brentq(gap, middle - far, middle, xtol=1e-14)
    return low, optimize.brentq(gap, middle, middle + far, xtol=1e-14)


def test_the_winner_the_set_and_the_order(ranked: Ranked) -> None:
    values = simulated(np.random.default_rng(3), (2.0, 1.0, 1.0005, 3.0), 12, 0.01)
    ranking = ranked(values)
    assert set(ranking.contenders) == {"knob=2", "knob=3"}
    assert ranking.winner == ranking.contenders[0]
    assert [other.configuration for other in ranking.others][1:] == ["knob=1", "knob=4"]
    assert [other.verdict for other in ranking.others][1:] == ["worsens", "worsens"]
    assert ranking.comparisons == 3


def test_higher_is_better_where_it_is(ranked: Ranked) -> None:
    values = simulated(np.random.default_rng(3), (2.0, 1.0, 3.0), 12, 0.01)
    speed = ELAPSED.model_copy(update={"direction": "higher"})
    ranking = ranked(values, speed)
    assert ranking.contenders == ("knob=3",)
    assert [other.configuration for other in ranking.others] == ["knob=1", "knob=2"]
    assert all(other.verdict == "worsens" and other.high is not None and other.high < 1 for other in ranking.others)


def test_ratios_and_intervals_agree_with_an_independent_computation(ranked: Ranked) -> None:
    values = simulated(np.random.default_rng(9), (1.0, 1.3, 2.31, 1.01), 12, 0.02)
    ranking = ranked(values)
    base = np.array(values[ranking.winner])
    for other in ranking.others:
        logs = np.log(np.array(values[other.configuration]) / base)
        assert other.estimate == pytest.approx(stats.gmean(np.exp(logs)))
        low, high = interval_of(logs, 0.05 / 3)
        assert other.low == pytest.approx(math.exp(low), rel=1e-6)
        assert other.high == pytest.approx(math.exp(high), rel=1e-6)
        ordinary = stats.ttest_1samp(logs, 0).confidence_interval(1 - 0.05 / 3)
        assert low < ordinary.low
        assert ordinary.high < high


@pytest.mark.parametrize("studies", [20, *slow(150)])
@pytest.mark.parametrize("means", [(1.0, 1.0, 1.0, 1.0), *slow((1.02, 1.0, 1.02, 1.01), (1.0, 1.002, 1.5, 1.001))])
def test_set_and_intervals_hold_at_the_stated_rate_though_each_look_may_be_the_last(
    ranked: Ranked, means: tuple[float, ...], studies: int
) -> None:
    """A study is wrong if at any look the best is out of the set, or an interval against the winner of that look does
    not hold the true ratio. One wrong study of 20 is as hard to keep to as two of 40: were a quarter of them wrong, one
    in 40 such tests would pass.
    """
    best, truth = f"knob={LEVELS[int(np.argmin(means))]}", dict(zip([f"knob={x}" for x in LEVELS], means, strict=True))
    missed, wrong = 0, 0
    for seed in range(studies):
        values = simulated(np.random.default_rng([seed, 5]), means, 20, 0.01)
        looks = [ranked({name: sample[:n] for name, sample in values.items()}) for n in (3, 4, 6, 9, 14, 20)]
        missed += any(best not in look.contenders for look in looks)
        wrong += any(
            (other.low is not None and other.low > truth[other.configuration] / truth[look.winner])
            or (other.high is not None and other.high < truth[other.configuration] / truth[look.winner])
            for look in looks
            for other in look.others
        )
    assert missed <= wrong <= 0.05 * studies


Study = tuple[Mapping[str, float], tuple[Verdict, ...], Ranking]


def narrowed(seed: int, blocks: int = 20) -> Iterator[Study]:
    """A study that leaves out what is decided: the true means, the verdicts and the ranking at each of its reviews."""
    generator = np.random.default_rng([seed, 77])
    effects = generator.choice([-0.7, -0.3, -0.02, 0.0, 0.02, 0.3], generator.integers(3, 7))
    truth = {f"knob={place}": math.exp(effect) for place, effect in enumerate((0.0, *effects))}
    made = [Configuration(name=name, levels={"knob": name[5:]}, baseline=name == "knob=0") for name in truth]
    going_on, trials, looks = tuple(truth), list[Trial](), reviews(5)
    review = next(looks)
    for block in range(blocks):
        common = generator.normal(0, 0.05)
        for position, place in enumerate(generator.permutation(len(going_on))):
            name, noise = going_on[place], generator.normal(0, 0.01)
            slot = Slot(block=block, position=position, configuration=name, seed=block)
            trials.append(Trial(slot=slot, status="ok", metrics={"elapsed": truth[name] * math.exp(common + noise)}))
        if block + 1 == review:
            clean, group = clean_trials(trials), family(made, [ELAPSED], 0.95)
            verdicts = judge(made, clean, [ELAPSED], order_matters=False)
            ranked = rankings(made, clean, [ELAPSED], group, smallest_effect=0.05, order_matters=False)
            yield from ((truth, verdicts, ranking) for ranking in ranked)
            if not any(verdict.is_open for verdict in verdicts):
                return
            going_on, review = members(tuple(truth), "knob=0", verdicts), next(looks)


def _apart(verdict: Verdict, other: Verdict) -> bool:
    return verdict.low is not None and other.high is not None and verdict.low > other.high


@pytest.mark.parametrize("studies", [6, *slow(120)])
def test_verdict_and_ranking_agree_where_a_configuration_was_decided_early(studies: int) -> None:
    """Nothing is proved worse and yet may be as good; the best is left out in few studies."""
    left_out = 0
    for seed in range(studies):
        without_best = False
        for truth, verdicts, ranking in narrowed(seed):
            possible = {*ranking.contenders, *(other.configuration for other in ranking.others if other.is_undecided)}
            assert possible == set(ranking.contenders) | {ranking.winner}
            word = {verdict.configuration: verdict for verdict in verdicts}
            assert not possible & {name for name, verdict in word.items() if verdict.verdict == "worsens"}
            assert "knob=0" not in possible or all(verdict.verdict != "improves" for verdict in verdicts)
            for name in possible & word.keys() - {ranking.winner}:
                assert not any(_apart(word[name], verdict) for verdict in verdicts), name
            without_best |= all(truth[name] > min(truth.values()) for name in ranking.contenders)
        left_out += without_best
    assert left_out <= 0.05 * studies


def test_what_was_decided_before_it_met_the_winner_is_worse_as_its_verdict_says(
    configurations: Any, trials: Any
) -> None:
    """Too few blocks hold both of two configurations for an interval; those with the baseline suffice."""
    values = {
        f"knob={level}": [mean * (1 + block / 1000) for block in range(12)]
        for level, mean in zip("123", (1.0, 0.9, 1.3), strict=True)
    }
    some = [
        trial
        for trial in trials(values)
        if trial.slot.block >= 8 - 8 * (trial.slot.configuration != "knob=2")
        and (trial.slot.configuration, trial.slot.block < 10) != ("knob=3", False)
    ]
    made = configurations("1", "2", "3")
    group = family(made, [ELAPSED], 0.95)
    (ranking,) = rankings(made, clean_trials(some), [ELAPSED], group, smallest_effect=0.02, order_matters=False)
    (other,) = (other for other in ranking.others if other.configuration == "knob=3")
    assert (other.blocks, other.low, other.high, other.verdict) == (2, None, None, "worsens")
    assert "knob=1" in other.reason


def test_it_finds_the_best_where_it_can(ranked: Ranked) -> None:
    """The set is not safe by being everything."""
    alone = [
        ranked(simulated(np.random.default_rng([seed, 6]), (1.0, 1.03, 1.06, 1.1), 20, 0.01)).contenders
        for seed in range(50)
    ]
    assert sum(contenders == ("knob=1",) for contenders in alone) >= 45


def test_blocks_with_gaps_are_compared_within_what_both_have(configurations: Any, trials: Any) -> None:
    values = simulated(np.random.default_rng(4), (1.0, 1.5, 2.0), 12, 0.01)
    some = [trial for trial in trials(values) if trial.slot.configuration != "knob=3" or trial.slot.block < 9]
    made = configurations("1", "2", "3")
    (ranking,) = rankings(made, clean_trials(some), [ELAPSED], Family(2, 0.95), smallest_effect=0.02)
    assert {other.configuration: other.blocks for other in ranking.others} == {"knob=2": 12, "knob=3": 9}
    assert ranking.contenders == ("knob=1",)


def test_differences_for_all_where_a_value_is_zero(ranked: Ranked) -> None:
    generator = np.random.default_rng(9)
    values = {f"knob={level}": generator.poisson(mean, 30) for level, mean in zip("123", (0.5, 6, 12), strict=True)}
    ranking = ranked(values)
    assert {other.scale for other in ranking.others} == {"difference"}
    by_name = {other.configuration: other.estimate for other in ranking.others}
    assert by_name["knob=3"] == pytest.approx(np.mean(values["knob=3"]) - np.mean(values["knob=1"]))


def test_quantiles_are_ranked_too(ranked: Ranked) -> None:
    values = simulated(np.random.default_rng(2), (1.0, 2.0, 1.0), 40, 0.01)
    ranking = ranked(values, ELAPSED.at(0.5))
    assert set(ranking.contenders) == {"knob=1", "knob=3"}


def test_too_few_blocks_tell_nothing_apart(ranked: Ranked) -> None:
    ranking = ranked(simulated(np.random.default_rng(2), (1.0, 2.0, 3.0), 2, 0.01), order_matters=False)
    assert len(ranking.contenders) == 3
    assert {other.verdict for other in ranking.others} == {"undecided"}
    assert all(other.reason == "too few blocks for an interval" for other in ranking.others)


def test_there_is_none_of_two_of_too_many_without_a_direction_or_where_machines_disagree(
    configurations: Any, trials: Any
) -> None:
    def number(levels: int, metric: Metric = ELAPSED, **more: Any) -> int:
        made = configurations(*map(str, range(levels)))
        clean = clean_trials(trials({configuration.name: [1.0, 1.1, 1.2] for configuration in made}))
        return len(rankings(made, clean, [metric], family(made, [metric], 0.95), smallest_effect=0.02, **more))

    assert (number(2), number(3), number(MOST), number(MOST + 1)) == (0, 1, 1, 0)
    assert number(3, ELAPSED.model_copy(update={"direction": "none"})) == 0
    disputed = AcrossMachines(
        configuration="knob=1",
        metric="elapsed",
        unit="s",
        scale="ratio",
        machines=(),
        p_value=None,
        agreement="depends",
        says="",
    )
    assert number(3, across=[disputed]) == 0


def test_the_luck_of_the_best_of_many_equal_ones_is_taken_off(configurations: Any, trials: Any) -> None:
    """Nine settings that all save 5 %: the best of them looks like 8 %."""
    names = [str(number) for number in range(10)]
    looks, expected = [], []
    for seed in range(60):
        noise = np.random.default_rng([seed, 11]).normal(0, 0.05, (10, 6))
        values = {
            f"knob={name}": (1.0 if name == "0" else 0.95) * np.exp(deviations)
            for name, deviations in zip(names, noise, strict=True)
        }
        made, clean = configurations(*names), clean_trials(trials(values))
        (ranking,) = rankings(made, clean, [ELAPSED], family(made, [ELAPSED], 0.95), smallest_effect=0.02)
        base = values["knob=0"]
        naive = math.exp(float(np.mean(np.log(values[ranking.winner] / base))))
        assert ranking.looks is None or ranking.looks == pytest.approx(naive)
        if ranking.winner != "knob=0":
            looks.append(naive)
            expected.append(naive if ranking.expected is None else ranking.expected)
    assert np.mean(looks) < 0.925
    assert np.mean(expected) == pytest.approx(0.945, abs=0.006)


def test_nothing_is_taken_off_where_differences_are_far_beyond_chance(ranked: Ranked) -> None:
    assert ranked(simulated(np.random.default_rng(3), (2.0, 1.0, 1.3, 3.0), 12, 0.01)).luck == ""
    same = {f"knob={level}": np.full(8, 1.0 if level == "1" else 0.9) for level in LEVELS}
    assert ranked(same).luck == ""


def test_luck_is_said_beside_the_winner(ranked: Ranked) -> None:
    ranking = ranked(simulated(np.random.default_rng(2), (1.0, 0.96, 0.96, 0.96), 8, 0.05))
    assert ranking.looks is not None
    assert ranking.expected is not None
    assert ranking.looks < ranking.expected
    assert "best of 4" in ranking.luck
    assert f"{100 * (1 - ranking.expected):.1f}"[:2] in ranking.luck

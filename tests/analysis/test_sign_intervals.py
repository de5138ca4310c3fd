"""Evidence by signs: right whatever the noise does in time, and honest about what few seeds show."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import typer
from numpy.typing import NDArray

from ajuste.analysis.verdict import judge
from ajuste.cli.main import whole_application
from ajuste.model.metric import Metric
from ajuste.model.verdict import Verdict
from ajuste.report.verdicts import verdict_text
from ajuste_stats.confidence_sequences import half_width
from ajuste_stats.decision import stated, trials_needed, verdict_word
from ajuste_stats.effects import effect, margin
from ajuste_stats.pairs import Pairs
from ajuste_stats.sign_intervals import (
    PLAIN,
    SHORT,
    blind_spot,
    each_side,
    fewest_blocks,
    log_evidence,
    sign_interval,
    wider_in_time,
)

LIMIT = math.log(20)


@pytest.mark.parametrize("period", [2, 3, 3.9, 4, 4.1, 4 / 3, 4 / 5])
def test_no_period_makes_more_than_5_percent_of_false_effects(period: float) -> None:
    random = np.random.default_rng(1)
    phase = random.uniform(0, 2 * np.pi, (400, 1))
    trials = 0.03 * np.sin(2 * np.pi * np.arange(80) / period + phase) + random.normal(0, 0.01, (400, 80))
    signs = np.where(random.random((400, 40)) < 0.5, 1, -1)
    evidence = log_evidence(signs * (trials[:, ::2] - trials[:, 1::2]), mixture=SHORT)
    assert np.mean(evidence.max(axis=1) >= LIMIT) <= 0.05


def test_six_blocks_alike_decide_and_five_do_not() -> None:
    assert fewest_blocks(0.05) == 6
    assert math.isfinite(sign_interval(np.full(6, 0.1), alpha=0.05, floor=1e-6).high)
    assert math.isinf(sign_interval(np.full(5, 0.1), alpha=0.05, floor=1e-6).high)


def test_normal_noise_takes_as_many_blocks_as_the_normal_mixture() -> None:
    values = np.random.default_rng(2).normal(1, 1, (300, 60))
    n = np.arange(1, 61)
    mean = np.cumsum(values, axis=1) / n
    spread = np.sqrt(np.maximum(np.cumsum(values**2, axis=1) / n - mean**2, 0))
    with np.errstate(invalid="ignore"):
        normal = mean > spread * np.array([half_width(int(k), 1.0, 0.05) for k in n])
    normal[:, 0] = False
    signs = log_evidence(values, mixture=SHORT) >= LIMIT
    assert np.mean(signs.argmax(axis=1) + 1) <= 1.1 * np.mean(normal.argmax(axis=1) + 1)


def test_the_interval_is_what_the_evidence_does_not_refute() -> None:
    values = np.random.default_rng(6).normal(0.5, 1, 20)
    interval = sign_interval(values, alpha=0.05)
    for bound, inward in ((interval.low, 1e-6), (interval.high, -1e-6)):
        assert (
            log_evidence(values - bound, mixture=SHORT)[-1]
            >= LIMIT
            > log_evidence(values - bound - inward, mixture=SHORT)[-1]
        )


@pytest.mark.parametrize(("blocks", "share"), [(3, 0.63), (8, 0.31), (29, 0.098)])
def test_what_so_many_blocks_cannot_see(blocks: int, share: float) -> None:
    assert blind_spot(blocks, 0.95) == pytest.approx(share, abs=0.005)


def test_what_many_blocks_cannot_see_is_not_nothing(configurations: Any, trials: Any, elapsed: Metric) -> None:
    alike = trials({"knob=1": [1.0, 1.1] * 400, "knob=2": [1.0, 1.1] * 400})
    (verdict,) = judge(configurations("1", "2"), alike, [elapsed])
    assert "fewer than 0.4 % of trials" in verdict.cannot_see


@pytest.mark.parametrize("order_matters", [False, True])
@pytest.mark.parametrize(("seeds", "word"), [(3, "undecided"), (28, "undecided"), (29, "equivalent")])
def test_a_few_trials_alike_are_not_equivalent_in_a_guest_or_on_the_host(
    configurations: Any, trials: Any, elapsed: Metric, seeds: int, word: str, order_matters: bool
) -> None:
    alike = trials({"knob=1": [1.0] * seeds, "knob=2": [1.0] * seeds})
    (verdict,) = judge(configurations("1", "2"), alike, [elapsed], order_matters=order_matters)
    assert verdict.verdict == word
    assert verdict.unseen == pytest.approx(blind_spot(seeds, 0.95))
    assert str(seeds) in verdict.cannot_see
    assert verdict.few_trials == (word == "undecided" and seeds >= 6)
    if verdict.few_trials:
        assert verdict_text(verdict, 0.05) == f"undecided: within ±5 % in {seeds} blocks, too few"
    if word == "undecided" and seeds > 6:
        assert ("trials" if order_matters else "seeds") in verdict.reason
        assert verdict.more_blocks == trials_needed() - seeds


def test_from_and_to_agree_with_the_percentage(configurations: Any, trials: Any, elapsed: Metric) -> None:
    base, other = [1.0, 10.0] * 4, [1.3, 14.0, 1.4, 13.0, 1.3, 13.0, 1.4, 14.0]
    measured = trials({"knob=1": base, "knob=2": other})
    (verdict,) = judge(configurations("1", "2"), measured, [elapsed], order_matters=False)
    assert verdict.estimate is not None
    assert verdict.old == pytest.approx(math.sqrt(10))
    assert verdict.new == pytest.approx(math.sqrt(10) * verdict.estimate)


def test_typical_and_mean_trials_that_disagree_are_no_improvement(
    configurations: Any, trials: Any, elapsed: Metric
) -> None:
    random = np.random.default_rng(3)
    base = 1 + 0.01 * random.random(40)
    other = 0.9 * base
    other[[7, 23]] = 6.0
    measured = trials({"knob=1": base.tolist(), "knob=2": other.tolist()})
    (verdict,) = judge(configurations("1", "2"), measured, [elapsed], order_matters=False)
    assert verdict.estimate is not None
    assert verdict.estimate < 1
    assert verdict.means_disagree
    assert verdict.verdict == "undecided"


def test_rare_expensive_trials_are_not_equivalent_and_tails_are_shown(
    configurations: Any, trials: Any, elapsed: Metric
) -> None:
    """Trials of one kind, 1 in 100, take 20 times as long: the typical trial is alike, the mean one 19 % slower."""
    random = np.random.default_rng(5)
    base, other = 1 + 0.001 * random.random((2, 100))
    other[70] = 20.0

    def judged(n: int) -> Verdict:
        measured = trials({"knob=1": base[:n].tolist(), "knob=2": other[:n].tolist()})
        (verdict,) = judge(configurations("1", "2"), measured, [elapsed], smallest_effect=0.18, order_matters=False)
        return verdict

    assert judged(70).verdict == "equivalent"
    verdict = judged(100)
    assert verdict.high is not None
    assert verdict.high < 1.18
    assert verdict.verdict == "undecided"
    assert "that of means +19 %" in verdict.reason
    assert "p95 goes from 1 s to 1 s; p99 goes from 1 s to 1.19 s" in verdict.reason


def test_few_seeds_that_differ_far_more_than_the_others_belong_to_the_mean(elapsed: Metric) -> None:
    """Most seeds lie on one side of the mean of all; that does not refute it."""
    missed = 0
    for study in range(100):
        random = np.random.default_rng((3, study))
        kind, common = random.random(30), 0.05 * random.standard_normal(30)
        differences = 0.001 * random.standard_normal(30) + np.select([kind < 0.1, kind < 0.15], [0.2, -0.2])
        known = effect(Pairs(np.exp(common), np.exp(common + differences)), elapsed, 0.05)
        assert known is not None
        missed += not known.interval.low <= 0.01 <= known.interval.high
    assert missed <= 5


def in_time(differences: NDArray[np.float64], trials: Any, configurations: Any, elapsed: Metric) -> Verdict:
    common = 0.05 * np.sin(np.arange(len(differences)))
    measured = trials({"knob=1": np.exp(common).tolist(), "knob=2": np.exp(common + differences).tolist()})
    (verdict,) = judge(configurations("1", "2"), measured, [elapsed], smallest_effect=0.01)
    return verdict


def test_a_state_that_lasts_over_blocks_widens_the_interval(configurations: Any, trials: Any, elapsed: Metric) -> None:
    """The same differences in another order are certain; what would tell more is named, and can be asked for."""
    lasting = np.repeat([0.034, 0.014, -0.008, 0.032, 0.009], 5) + np.tile([0.001, -0.001, 0, 0.002, -0.002], 5)
    verdict = in_time(lasting, trials, configurations, elapsed)
    assert verdict.verdict == "undecided"
    assert "neighbouring blocks resemble each other" in verdict.reason
    assert 1 < int(verdict.reason.split(" independent")[0].split()[-1]) < 12
    compare = typer.main.get_command(whole_application()).commands["compare"]  # type: ignore[attr-defined]
    options = {name for parameter in compare.params for name in parameter.opts}
    assert {"--service", "--reboots"} <= {word.strip("(),;") for word in verdict.reason.split()} & options
    mixed = in_time(np.random.default_rng(4).permutation(lasting), trials, configurations, elapsed)
    assert mixed.verdict == "worsens"
    assert mixed.estimate == pytest.approx(verdict.estimate)


def test_a_state_that_changes_once_in_few_blocks_is_seen(configurations: Any, trials: Any, elapsed: Metric) -> None:
    """Eight blocks: four in a state, four in another."""
    halves = np.repeat([0.04, 0.01], 4) + np.tile([0.001, -0.001], 4)
    lasting = in_time(halves, trials, configurations, elapsed)
    assert lasting.verdict == "undecided"
    assert lasting.more_blocks is not None
    mixed = in_time(halves.reshape(2, 4).T.ravel(), trials, configurations, elapsed)
    assert mixed.verdict == "worsens"


def test_white_noise_costs_few_blocks_for_a_state_that_it_seems_to_have() -> None:
    noise = np.random.default_rng(6).standard_normal((4000, 40))
    for blocks in (6, 10, 20, 40):
        wider = wider_in_time(noise[:, :blocks])
        assert np.mean(wider > 1) <= 0.055
        assert np.median(wider) == 1
    assert np.all(wider_in_time(np.zeros((2, 20))) == 1)


def blocks_until(evidence: NDArray[np.float64]) -> float:
    """The mean number of blocks until the evidence suffices, or of all blocks."""
    refuted = evidence >= LIMIT
    return float(np.mean(np.where(refuted.any(axis=1), refuted.argmax(axis=1) + 1, evidence.shape[1])))


def test_far_trials_cost_few_blocks() -> None:
    random = np.random.default_rng(11)
    noise = random.normal(0, 0.014, (400, 60))
    far = noise + np.where(random.random(noise.shape) < 0.1, random.uniform(-0.5, 0.5, noise.shape), 0)
    for disturbed, most in ((far, 0.75), (noise, 1.05)):
        clipped, plain = (log_evidence(disturbed + 0.02, mixture=mixture) for mixture in (SHORT, PLAIN))
        assert blocks_until(clipped) <= most * blocks_until(plain)
        null = log_evidence(disturbed * np.where(random.random(noise.shape) < 0.5, 1, -1), mixture=SHORT)
        assert np.mean(null.max(axis=1) >= LIMIT) <= 0.05


def test_each_bound_alone_is_wrong_in_at_most_5_percent_at_any_look() -> None:
    values = np.random.default_rng(12).standard_t(3, (600, 60))
    assert np.mean(log_evidence(values, mixture=SHORT, side=1).max(axis=1) >= LIMIT) <= 0.05
    assert np.mean(log_evidence(values, mixture=SHORT, side=-1).max(axis=1) >= LIMIT) <= 0.05


def test_bounds_of_the_full_error_rate_each_are_what_the_evidence_of_one_side_does_not_refute() -> None:
    values = np.random.default_rng(6).normal(0.5, 1, 20)
    both = sign_interval(values, alpha=0.05)
    sides = each_side(both, values, alpha=0.05)
    assert both.low < sides.low < both.mean < sides.high < both.high
    for bound, inward, side in ((sides.low, 1e-6, 1), (sides.high, -1e-6, -1)):
        refuted, inside = (log_evidence(values - at, mixture=SHORT, side=side)[-1] for at in (bound, bound + inward))
        assert refuted >= LIMIT - 1e-9 > inside


def test_equivalent_at_the_edge_of_the_zone_is_wrong_in_at_most_5_percent_and_takes_fewer_blocks(
    elapsed: Metric,
) -> None:
    looks, wrong, one_sided, both_sides = (29, 35, 45, 60), 0, [], []
    for study in range(120):
        random = np.random.default_rng((13, study))
        base, same, edge = np.exp(random.normal(0, [[0.01], [0.01], [0.01]], (3, 60)))
        first = random.random(60) < 0.5
        words = []
        for n in looks:
            known = effect(Pairs(base[:n], edge[:n] * 1.01, first[:n]), elapsed, 0.05)
            assert known is not None
            words.append(verdict_word(known, elapsed, margin(known, 0.01)))
        wrong += next((word for word in words if word != "undecided"), "") == "equivalent"
        for n in looks:
            known = effect(Pairs(base[:n], same[:n], first[:n]), elapsed, 0.05)
            assert known is not None
            zone = margin(known, 0.01)
            stated_interval = stated(known, "equivalent").interval
            if verdict_word(known, elapsed, zone) == "equivalent":
                one_sided.append(n)
                assert -zone < stated_interval.low
                assert stated_interval.high < zone
            both_sides.append(-zone < known.interval.low and known.interval.high < zone)
    assert wrong <= 0.05 * 120
    assert len(one_sided) >= 1.1 * sum(both_sides)

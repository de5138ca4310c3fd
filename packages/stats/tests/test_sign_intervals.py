"""Evidence by signs: right whatever the noise does in time, and honest about what few seeds show."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from ajuste_stats.confidence_sequences import half_width
from ajuste_stats.decision import stated, verdict_word
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
from ajuste_stats.terms import Measure

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


def test_few_seeds_that_differ_far_more_than_the_others_belong_to_the_mean(elapsed: Measure) -> None:
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


@pytest.mark.parametrize("studies", [40, pytest.param(120, marks=pytest.mark.slow)])
def test_equivalent_at_the_edge_of_the_zone_is_wrong_in_at_most_5_percent_and_takes_fewer_blocks(
    elapsed: Measure, studies: int
) -> None:
    looks, wrong, one_sided, both_sides = (29, 35, 45, 60), 0, [], []
    for study in range(studies):
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
    assert wrong <= 0.05 * studies
    assert len(one_sided) >= 1.1 * sum(both_sides)

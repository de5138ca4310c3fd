"""Trials that seldom cost much: *equivalent* and *improves* are not said of typical trials alone."""

from __future__ import annotations

import math

import numpy as np

from ajuste_stats.decision import disagree, too_few_trials, trials_needed
from ajuste_stats.effects import effect, margin
from ajuste_stats.pairs import Pairs
from ajuste_stats.terms import Measure


def test_a_saving_that_few_trials_may_cost_again_is_no_improvement(elapsed: Measure) -> None:
    random = np.random.default_rng(5)
    base = np.exp(0.003 * random.standard_normal(24))
    other = 0.97 * base
    other[5] = 1.6
    known = effect(Pairs(base, other, np.arange(24) % 2 == 0), elapsed, 0.05)
    assert known is not None
    assert (known.mean_ratio or 0) < 0
    assert disagree(known, margin(known, 0.01))
    gone = effect(Pairs(other, base, np.arange(24) % 2 == 0), elapsed, 0.05)
    assert gone is not None
    assert not disagree(effect(Pairs(base, 0.97 * base, np.arange(24) % 2 == 0), elapsed, 0.05) or gone, 0.01)


def test_far_trials_of_the_baseline_that_vanish_are_no_doubt(elapsed: Measure) -> None:
    base = np.exp(0.003 * np.random.default_rng(6).standard_normal(24))
    other = 0.97 * base * np.exp(0.003 * np.random.default_rng(7).standard_normal(24))
    base[[3, 9]] *= 2
    known = effect(Pairs(base, other, np.arange(24) % 2 == 0), elapsed, 0.05)
    assert known is not None
    assert not disagree(known, margin(known, 0.01))


def test_29_trials_see_what_happens_in_a_tenth() -> None:
    assert 0.9 ** trials_needed() <= 0.05 < 0.9 ** (trials_needed() - 1)
    values = np.exp(0.01 * np.random.default_rng(8).standard_normal((2, 28)))
    quantile = Measure(unit="s", direction="lower", quantile=0.5)
    known = effect(Pairs(values[0], values[1], np.arange(28) % 2 == 0), quantile, 0.05)
    assert known is not None
    assert not too_few_trials(known)
    assert math.isfinite(known.interval.half_width)


def test_blocks_that_vary_hide_no_far_trials(elapsed: Measure) -> None:
    """A fifth of one's trials cost what the others save, in blocks that vary by more than both."""
    random = np.random.default_rng(8)
    base = np.exp(0.05 * random.standard_normal(30))
    other = base * np.where(np.arange(30) % 6 == 3, 1.12, 0.97) * np.exp(0.002 * random.standard_normal(30))
    known = effect(Pairs(base, other, np.arange(30) % 2 == 0), elapsed, 0.05)
    assert known is not None
    assert known.high is not None
    assert known.high < 1
    assert disagree(known, margin(known, 0.01))
    same = effect(Pairs(base, 0.97 * base, np.arange(30) % 2 == 0), elapsed, 0.05)
    assert same is not None
    assert not disagree(same, margin(same, 0.01))

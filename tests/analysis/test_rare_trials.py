"""Trials that seldom cost much: *equivalent* and *improves* are not said of typical trials alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.verdicts.traps import TRAPS, played
from numpy.typing import NDArray

from ajuste.analysis.pairs import by_round, clean_trials
from ajuste.analysis.verdict import judge
from ajuste.model.metric import Metric
from ajuste.model.verdict import Verdict
from ajuste_stats.decision import averages_exceed
from ajuste_stats.effects import effect, margin
from ajuste_stats.pairs import Pairs

Floats = NDArray[np.float64]


def judged(configurations: Any, trials: Any, elapsed: Metric, base: Floats, other: Floats, limit: float) -> Verdict:
    measured = trials({"knob=1": base.tolist(), "knob=2": other.tolist()})
    (verdict,) = judge(configurations("1", "2"), measured, [elapsed], smallest_effect=limit)
    return verdict


def test_what_was_seen_once_may_happen_twice_as_often(configurations: Any, trials: Any, elapsed: Metric) -> None:
    """A single trial of 40 is 30 % slower: the mean is 0.75 % slower, but that is one event."""
    base = np.exp(0.002 * np.random.default_rng(1).standard_normal(40))
    other = base * np.exp(0.002 * np.random.default_rng(2).standard_normal(40))
    assert judged(configurations, trials, elapsed, base, other, 0.01).verdict == "equivalent"
    other[17] *= 1.3
    verdict = judged(configurations, trials, elapsed, base, other, 0.01)
    assert verdict.verdict == "undecided"
    known = effect(Pairs(base, other, np.arange(40) % 2 == 0), elapsed, 0.05)
    assert known is not None
    assert abs(known.mean_ratio or 0) < margin(known, 0.01)
    assert averages_exceed(known, margin(known, 0.01))


def test_typical_and_mean_trials_are_said_apart(configurations: Any, trials: Any, elapsed: Metric) -> None:
    """Half of the trials take 1.3 times as long, and the others are 0.2 % faster."""
    random = np.random.default_rng(3)
    base = np.exp(0.001 * random.standard_normal(60))
    other = base * np.where(np.arange(60) % 5 < 2, 1.35, 0.998)
    verdict = judged(configurations, trials, elapsed, base, other, 0.02)
    assert verdict.verdict == "worsens"
    assert "typical change is −0." in verdict.reason
    assert "that of means +13.9 %" in verdict.reason or "that of means +14" in verdict.reason


def test_a_median_on_the_other_side_decides_nothing(configurations: Any, trials: Any, elapsed: Metric) -> None:
    """Trials that are 5 % faster, and two fifths that take twice as long."""
    base = np.exp(0.001 * np.random.default_rng(4).standard_normal(60))
    slow = np.random.default_rng(5).permutation(60) % 5 < 2
    verdict = judged(configurations, trials, elapsed, base, base * np.where(slow, 2.0, 0.95), 0.02)
    assert verdict.low is not None
    assert verdict.low > 1
    assert verdict.verdict == "undecided"
    assert "−5" in verdict.reason


def test_rounds_of_boots_have_all_their_trials(configurations: Any, trials: Any, elapsed: Metric) -> None:
    alike = trials({"knob=1": [1.0, 1.001] * 30, "knob=2": [1.001, 1.0] * 30})
    rounds = by_round(clean_trials(alike), 6)
    (verdict,) = judge(configurations("1", "2"), rounds, [elapsed], order_matters=False)
    assert (verdict.blocks, verdict.verdict) == (10, "equivalent")


@pytest.mark.slow
@pytest.mark.parametrize("trap", [trap for trap in TRAPS if not trap.remark], ids=lambda trap: trap.name)
def test_no_trap_is_fallen_into(trap: Any) -> None:
    assert played(trap, 200).wrong <= 0.08 * 200  # 5 %, and what 200 studies vary

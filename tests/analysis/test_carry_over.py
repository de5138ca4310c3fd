"""Trials that change the ones after them: the culprit does not improve because the other bears the cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ajuste.analysis.verdict import judge
from ajuste.model.metric import Metric
from ajuste.model.trial import Slot, Trial
from ajuste.model.verdict import Verdict


def judged(configurations: Any, elapsed: Metric, effect: float, left: float, blocks: int = 30) -> Verdict:
    """Judge trials in random order of which the other configuration takes 1 + ``effect`` times as long, and makes the
    trial after it 1 + ``left`` times as long.
    """
    random = np.random.default_rng(2)
    before, trials = "", []
    for block in range(blocks):
        names = ["knob=1", "knob=2"] if random.random() < 0.5 else ["knob=2", "knob=1"]
        for position, name in enumerate(names):
            time = (1 + effect * (name == "knob=2")) * (1 + left * (before == "knob=2"))
            metrics = {elapsed.name: float(time * np.exp(0.003 * random.standard_normal()))}
            slot = Slot(block=block, position=position, configuration=name, seed=block)
            trials.append(Trial(slot=slot, status="ok", metrics=metrics))
            before = name
    (verdict,) = judge(configurations("1", "2"), trials, [elapsed], smallest_effect=0.01)
    return verdict


def test_who_leaves_its_cost_to_the_next_trial_does_not_improve(configurations: Any, elapsed: Metric) -> None:
    verdict = judged(configurations, elapsed, 0.0, 0.04, 60)
    assert verdict.verdict == "undecided"
    assert "+4" in verdict.reason
    assert "prepare" in verdict.reason


def test_a_cost_in_the_next_trial_is_not_equivalent(configurations: Any, elapsed: Metric) -> None:
    """The other one costs 1 % more at once and 2 % in the next trial, half of which the baseline bears."""
    assert judged(configurations, elapsed, 0.01, 0.02, 60).verdict == "undecided"


@pytest.mark.parametrize(("effect", "left", "word"), [(-0.03, 0.0, "improves"), (-0.05, -0.02, "improves")])
def test_what_is_left_for_the_next_trial_and_helps_is_no_doubt(
    configurations: Any, elapsed: Metric, effect: float, left: float, word: str
) -> None:
    assert judged(configurations, elapsed, effect, left).verdict == word

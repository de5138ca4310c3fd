"""Time that several trials took."""

from __future__ import annotations

import random

import pytest

from ajuste.model.trial import Slot, Trial
from ajuste.run.schedule import Spans


def trial(begin_s: int, seconds: float) -> Trial:
    started = f"2026-01-01T{begin_s // 3600:02}:{begin_s // 60 % 60:02}:{begin_s % 60:02}+00:00"
    slot = Slot(block=0, position=0, configuration="a", seed=1)
    return Trial(slot=slot, status="ok", started=started, host_seconds=seconds)


def minutes(*trials: Trial) -> float:
    spans = Spans()
    for trial in trials:
        spans.add(trial)
    return spans.minutes


def test_time_in_which_trials_overlap_counts_once() -> None:
    assert minutes() == 0
    assert minutes(trial(600, 60), trial(0, 60)) == pytest.approx(2.0)
    assert minutes(trial(0, 60), trial(30, 60)) == pytest.approx(1.5)
    assert minutes(trial(0, 600), trial(30, 60)) == pytest.approx(10)


def test_the_order_in_which_they_came_does_not_matter() -> None:
    chance = random.Random(1)
    many = [(chance.randrange(3000), chance.randrange(1, 60)) for _ in range(300)]
    covered = {second for begin, seconds in many for second in range(begin, begin + seconds)}
    assert minutes(*(trial(*span) for span in many)) == pytest.approx(len(covered) / 60)

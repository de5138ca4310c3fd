"""The time left that the page of a run shows: at each trial of a recorded run, compared with what followed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from ajuste.study.schema import BudgetTable
from ajuste_lab.following import NewTrial
from ajuste_lab.watch import time_left
from played import one_command

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)


def recorded(
    blocks: int, *, seconds: float = 2.0, at_once: int = 1, pause_after: int = -1, flagged: int = 0
) -> Iterator[NewTrial]:
    """Trials of three configurations, the last of which takes twice as long; every ``flagged`` one is repeated."""
    at, number = [0.0] * at_once, 0
    for block in range(blocks):
        if block == pause_after:
            at = [max(at) + 7200] * at_once
        for position, name in enumerate("abc"):
            for attempt in range(2):
                number += 1
                place = at.index(min(at))
                lasts = seconds * (2 if name == "c" else 1)
                spoilt = attempt == 0 and flagged > 0 and number % flagged == 0
                started = (BEGAN + timedelta(seconds=at[place])).isoformat()
                status = "flagged" if spoilt else "ok"
                yield NewTrial(number, block, position, attempt, name, False, status, "", started, lasts)
                at[place] += lasts + 0.1
                if not spoilt:
                    break


def ended(trial: NewTrial) -> float:
    return datetime.fromisoformat(trial.started).timestamp() + trial.host_seconds


@pytest.mark.parametrize(
    ("trials", "max_minutes"),
    [
        (list(recorded(12)), 600),
        (list(recorded(12, seconds=90)), 600),
        (list(recorded(12, pause_after=4)), 600),
        (list(recorded(12, at_once=2)), 600),
        (list(recorded(12, flagged=3)), 600),
        (list(recorded(6)), 0.8),  # the minutes of six blocks
    ],
)
def test_what_is_left_is_right_within_a_factor_of_two(trials: list[NewTrial], max_minutes: float) -> None:
    study = one_command().study
    budget = BudgetTable(min_blocks=3, max_blocks=12, max_minutes=max_minutes)
    study = study.model_copy(update={"budget": budget})
    end = max(map(ended, trials))
    before_pause = [trial for trial in trials if ended(trial) < BEGAN.timestamp() + 3600]
    paused = len(before_pause) < len(trials)
    checked = 0
    for count in range(3, len(trials)):
        now = ended(trials[count - 1])
        done = len({trial.block for trial in trials[:count]}) - (trials[count].block == trials[count - 1].block)
        actual = end - now - (7200 if paused and count <= len(before_pause) else 0)
        estimate = time_left(study, trials[:count], done, (), now + 0.05) if done else None
        if estimate is not None and actual > 6:
            checked += 1
            assert 0.5 <= estimate[0] / actual <= 2, (count, estimate, actual)
    assert checked > 5


def test_nothing_is_said_before_there_is_a_pace() -> None:
    assert time_left(one_command().study, [], 0, (), 0) is None
    assert time_left(one_command().study, list(recorded(1))[:1], 0, (), 0) is None

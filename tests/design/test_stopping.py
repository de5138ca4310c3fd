from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from ajuste.design.stopping import (
    LOOKS_EACH,
    Mean,
    StoppingLimits,
    hopeless,
    is_look,
    stop,
    stop_irrelevant,
    wants_repeat,
)
from ajuste.model.trial import Slot, Trial
from verdicts import verdict

LIMITS = StoppingLimits(min_blocks=5, max_blocks=30, max_minutes=20)


@pytest.mark.parametrize(
    ("words", "blocks", "minutes", "why"),
    [
        (["improves", "equivalent"], 5, 1, "decided"),
        (["improves", "equivalent"], 4, 1, None),
        (["improves", "undecided"], 29, 19.9, None),
        (["improves", "undecided"], 30, 1, "budget"),
        (["improves", "undecided"], 6, 20, "time"),
        (["improves", "differs"], 30, 30, "decided"),
        (["improves"], 4, 21, "time"),
        ([], 5, 0, "decided"),
        ([], 4, 0, None),
    ],
)
def test_it_stops_when_decided_or_spent(words: list[str], blocks: int, minutes: float, why: str | None) -> None:
    stopped = stop([verdict(word=word) for word in words], blocks, minutes, LIMITS)
    assert (stopped.why if stopped else None) == why
    if stopped:
        assert stopped.words


def test_a_limit_is_said_in_few_digits() -> None:
    limits = StoppingLimits(min_blocks=5, max_blocks=30, max_minutes=100 / 60)
    stopped = stop([verdict(word="undecided")], 6, 2, limits)
    assert stopped is not None
    assert "limit of 1.7 minutes after 6 blocks" in stopped.words


def test_described_metrics_do_not_keep_it_going() -> None:
    stopped = stop([verdict(word="improves"), verdict(deciding=False)], 5, 1, LIMITS)
    assert stopped is not None
    assert stopped.why == "decided"


def test_what_can_never_be_measured_ends_it_but_an_open_question_does_not() -> None:
    hopeless = verdict(blocks=0)
    stopped = stop([verdict(word="improves"), hopeless], 5, 1, LIMITS)
    assert stopped is not None
    assert stopped.why == "failed"
    assert "elapsed under knob=2" in stopped.words
    assert stop([verdict(), hopeless], 5, 1, LIMITS) is None


@pytest.mark.parametrize(
    ("statuses", "clock", "again"),
    [
        (["ok"], "wall", False),
        (["flagged"], "wall", True),
        (["flagged", "flagged"], "wall", False),
        (["failed"], "wall", True),
        (["flagged"], "virtual", False),
        (["failed"], "virtual", True),
        (["failed", "failed"], "virtual", False),
        ([], "wall", False),
    ],
)
def test_a_trial_that_was_not_clean_is_repeated_once_where_that_can_help(
    statuses: list[Any], clock: Any, again: bool
) -> None:
    slot = Slot(block=0, position=0, configuration="a", seed=1)
    attempts = [Trial(slot=slot, attempt=i, status=status) for i, status in enumerate(statuses)]
    assert wants_repeat(attempts, clock) is again


@pytest.mark.parametrize(
    ("known", "runs", "blocks", "minutes", "why"),
    [
        (True, 10, 10, 0.2, "decided"),
        (True, 10, 10, 0.04, None),
        (True, 4, 4, 1, None),
        (False, 29, 29, 1, None),
        (False, 30, 30, 1, "budget"),
        (False, 8, 8, 20, "time"),
        (False, 0, 5, 1, "failed"),
    ],
)
def test_a_single_configuration_is_measured_until_its_mean_is_known_and_for_the_least_time(
    known: bool, runs: int, blocks: int, minutes: float, why: str | None
) -> None:
    limits = StoppingLimits(min_blocks=5, max_blocks=30, max_minutes=20, min_seconds=3)
    stopped = stop([], blocks, minutes, limits, [Mean("elapsed", known, runs)])
    assert (stopped.why if stopped else None) == why


def test_it_looks_after_every_block_at_first_then_less_often_and_always_at_the_end() -> None:
    limits = StoppingLimits(min_blocks=5, max_blocks=1003, max_minutes=20)
    looks: list[int] = []
    for blocks in range(1, 1004):
        if is_look(blocks, looks[-1] if looks else 0, limits):
            looks.append(blocks)
    assert looks[:LOOKS_EACH] == list(range(1, LOOKS_EACH + 1))
    assert looks[-1] == 1003
    assert all(later <= 1.06 * earlier + 1 for earlier, later in pairwise(looks))
    assert len(looks) < 150


def test_a_configuration_that_broke_in_every_attempt_of_the_first_block_is_hopeless() -> None:
    def trial(block: int, configuration: str, attempt: int, status: Any) -> Trial:
        slot = Slot(block=block, position=0, configuration=configuration, seed=1)
        return Trial(slot=slot, attempt=attempt, status=status)

    def broken(attempted: Trial) -> bool:
        return attempted.status == "failed"

    works = trial(0, "a", 0, "ok")
    assert hopeless([works, trial(0, "b", 0, "failed"), trial(0, "b", 1, "ok")], broken) is None
    assert hopeless([works, trial(1, "b", 0, "failed")], broken) is None
    broken_trial = hopeless([works, trial(0, "b", 0, "failed"), trial(0, "b", 1, "failed")], broken)
    assert broken_trial is not None
    assert (broken_trial.slot.configuration, broken_trial.attempt) == ("b", 1)


@pytest.mark.parametrize(
    ("word", "blocks", "stops"), [("undecided", 5, True), ("undecided", 4, False), ("worsens", 5, False)]
)
def test_what_cannot_matter_is_measured_no_further_unless_something_is_certain(
    word: Any, blocks: int, stops: bool
) -> None:
    stopped = stop_irrelevant([verdict(word=word)], blocks, LIMITS.min_blocks)
    assert (stopped is not None) == stops
    assert stopped is None or stopped.why == "irrelevant"


def test_what_no_blocks_can_decide_is_not_said_to_be_decided() -> None:
    stopped = stop([verdict(word="undecided", too_coarse=True)], 7, 1, LIMITS)
    assert stopped is not None
    assert "verdict" not in stopped.words
    assert "7 blocks" in stopped.words

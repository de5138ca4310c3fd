from __future__ import annotations

from typing import Any

import pytest

from ajuste.design.stopping import Limits, stop, wants_repeat
from ajuste.model.trial import Slot, Trial
from ajuste.model.verdict import Verdict

LIMITS = Limits(min_blocks=5, max_blocks=30, max_minutes=20)


def verdict(word: Any, *, deciding: bool = True, blocks: int = 5) -> Verdict:
    return Verdict(
        configuration="knob=2",
        metric="elapsed",
        unit="s",
        direction="lower",
        scale="ratio",
        verdict=word,
        estimate=1.0,
        low=0.9,
        high=1.1,
        level=0.95,
        blocks=blocks,
        deciding=deciding,
        reason="",
    )


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
    found = stop([verdict(word) for word in words], blocks, minutes, LIMITS)
    assert (found.why if found else None) == why
    if found:
        assert found.words


def test_described_metrics_do_not_keep_it_going() -> None:
    found = stop([verdict("improves"), verdict("undecided", deciding=False)], 5, 1, LIMITS)
    assert found is not None
    assert found.why == "decided"


def test_what_can_never_be_measured_ends_it_but_an_open_question_does_not() -> None:
    hopeless = verdict("undecided", blocks=0)
    found = stop([verdict("improves"), hopeless], 5, 1, LIMITS)
    assert found is not None
    assert found.why == "failed"
    assert "elapsed under knob=2" in found.words
    assert stop([verdict("undecided"), hopeless], 5, 1, LIMITS) is None


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

"""When to stop, and which trials to repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ajuste.model.results import Clock
from ajuste.model.trial import Trial
from ajuste.model.verdict import Verdict

MOST_ATTEMPTS = 2
"""A trial that was not clean is run once more, and then left as it is."""


Why = Literal["decided", "budget", "time", "interrupted", "failed"]
"""Why a run ended. What is decided here is never ``interrupted``."""


@dataclass(frozen=True)
class Limits:
    """The budget: measured blocks (without warm-up) and minutes of the host's time."""

    min_blocks: int
    max_blocks: int
    max_minutes: float


@dataclass(frozen=True)
class Stop:
    """Why the run ends: ``why`` in one word, ``words`` for people."""

    why: Why
    words: str


def stop(verdicts: Sequence[Verdict], blocks: int, minutes: float, limits: Limits) -> Stop | None:
    """Whether to stop after ``blocks`` measured blocks and ``minutes``; ``None`` means: go on.

    Looking after every block is what the intervals are made for (see ``analysis.sequence``).
    """
    deciding = [v for v in verdicts if v.deciding]
    open_ones = [v for v in deciding if v.verdict == "undecided"]
    if blocks >= limits.min_blocks:
        if not open_ones:
            return Stop("decided", _decided(len(deciding), blocks))
        if all(v.blocks == 0 for v in open_ones):
            return Stop("failed", f"after {_blocks(blocks)} there is no clean pair of trials for {_named(open_ones)}")
    if blocks >= limits.max_blocks:
        return Stop("budget", f"the budget of {_blocks(limits.max_blocks)} is spent; {_still(open_ones)}")
    if minutes >= limits.max_minutes:
        return Stop(
            "time",
            f"the budget of {limits.max_minutes:g} minutes is spent after {_blocks(blocks)}; {_still(open_ones)}",
        )
    return None


def wants_repeat(attempts: Sequence[Trial], clock: Clock) -> bool:
    """Whether one slot of the design should be run again after these attempts.

    Under the virtual clock the same seed gives the same trial, so there only one that could not be measured at all
    (the host may be to blame) is worth another attempt.
    """
    if not attempts or len(attempts) >= MOST_ATTEMPTS:
        return False
    status = attempts[-1].status
    return status == "failed" or (status == "flagged" and clock == "wall")


def _decided(verdicts: int, blocks: int) -> str:
    if not verdicts:
        return f"{_blocks(blocks)} were measured, and there is nothing to compare"
    return (
        f"every verdict is in after {_blocks(blocks)}" if verdicts > 1 else f"the verdict is in after {_blocks(blocks)}"
    )


def _still(open_ones: list[Verdict]) -> str:
    if not open_ones:
        return "every verdict is in, though from fewer blocks than the least that were asked for"
    return "one verdict is still open" if len(open_ones) == 1 else f"{len(open_ones)} verdicts are still open"


def _blocks(count: int) -> str:
    return "1 block" if count == 1 else f"{count} blocks"


def _named(verdicts: list[Verdict]) -> str:
    return ", ".join(f"{v.metric} under {v.configuration}" for v in verdicts[:3]) + (" …" if len(verdicts) > 3 else "")

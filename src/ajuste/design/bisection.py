"""Where along a line of candidates a difference comes in, from as few tests as may be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

Outcome = Literal["there", "absent", "undecided", "unusable", "impossible"]
"""Of a test of one candidate: whether the difference is ``there`` or ``absent``; ``undecided`` where what was measured
does not tell, ``unusable`` where nothing could be measured, ``impossible`` where there can be no such candidate."""


def open_between(count: int, outcomes: Mapping[int, Outcome]) -> tuple[int, int]:
    """Between which two of ``count`` candidates in a row the difference comes in: the last that has it not, and the
    first after that which has it. The first and the last candidate are the known ends.
    """
    there = min((place for place, outcome in outcomes.items() if outcome == "there"), default=count - 1)
    absent = max((place for place, outcome in outcomes.items() if outcome == "absent" and place < there), default=0)
    return absent, there


def next_candidate(count: int, outcomes: Mapping[int, Outcome]) -> int | None:
    """The candidate to test next, the one nearest to the middle of those that can still tell something; None where all
    is known that can be. What could not be told of a candidate is not asked again.
    """
    low, high = open_between(count, outcomes)
    untested = [place for place in range(low + 1, high) if place not in outcomes]
    middle = (low + high) / 2
    return min(untested, key=lambda place: (abs(place - middle), place), default=None)


def culprits(count: int, outcomes: Mapping[int, Outcome]) -> tuple[int, ...]:
    """The candidates with one of which the difference came: a single one, unless some could not be told."""
    low, high = open_between(count, outcomes)
    return tuple(range(low + 1, high + 1))


def steps_needed(count: int) -> int:
    """How many tests a search among ``count`` candidates takes, both ends included, where every one can be told."""
    return math.ceil(math.log2(count - 1)) if count > 2 else 0


def confidence_of_each(confidence: float, tests: int) -> float:
    """How sure every one of ``tests`` must be for all of them to be right with ``confidence`` (Bonferroni)."""
    return 1 - (1 - confidence) / max(1, tests)

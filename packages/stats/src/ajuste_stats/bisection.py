"""Bisection: where along a line of candidates a difference comes in, from as few tests as may be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

Outcome = Literal["there", "absent", "undecided", "unusable", "impossible"]
"""The outcome of a test of one candidate: the difference is ``there`` or ``absent``; ``undecided`` where what was
measured does not tell, ``unusable`` where nothing could be measured, ``impossible`` where there can be no such
candidate.
"""


def open_between(count: int, outcomes: Mapping[int, Outcome]) -> tuple[int, int]:
    """Return the last of ``count`` candidates in a row without the difference, and the first after it that has it.

    The first and the last candidate are the known ends.
    """
    there = min((place for place, outcome in outcomes.items() if outcome == "there"), default=count - 1)
    absent = max((place for place, outcome in outcomes.items() if outcome == "absent" and place < there), default=0)
    return absent, there


def next_candidate(count: int, outcomes: Mapping[int, Outcome]) -> int | None:
    """Return the candidate nearest to the middle of those that can still tell something, ``None`` without any.

    A candidate without an answer is not tested again.
    """
    low, high = open_between(count, outcomes)
    untested = [place for place in range(low + 1, high) if place not in outcomes]
    middle = (low + high) / 2
    return min(untested, key=lambda place: (abs(place - middle), place), default=None)


def culprits(count: int, outcomes: Mapping[int, Outcome]) -> tuple[int, ...]:
    """Return the candidates that may have brought the difference: one, unless some tests had no answer."""
    low, high = open_between(count, outcomes)
    return tuple(range(low + 1, high + 1))


def steps_needed(count: int) -> int:
    """Return the number of tests for ``count`` candidates, both ends included, if every test is decisive."""
    return math.ceil(math.log2(count - 1)) if count > 2 else 0


def confidence_of_each(confidence: float, tests: int) -> float:
    """Return the confidence of each of ``tests`` for all to be right with ``confidence`` (Bonferroni)."""
    return 1 - (1 - confidence) / max(1, tests)

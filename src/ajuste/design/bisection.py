"""Bisection: where along a line of candidates a difference comes in, from as few tests as may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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


# The smallest part of a set of changes that still makes a difference: delta debugging.
#
# Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on Software
# Engineering 28 (2002), algorithm ddmin, and Zeller, "Yesterday, my program worked. Today, it does not. Why?" (1999)
# for its use on changes.


Changes = tuple[str, ...]
Test = Callable[[Changes], Outcome]


def minimal_changes(changes: Sequence[str], test: Test) -> Changes:
    """Return a part of ``changes`` with which the difference is ``there`` and of which none can be left out.

    All of them together are known to have it, none of them not to. No set is tested twice. A part of which the test
    cannot tell is not taken; so the result may be larger than need be, never wrong about having the difference. It
    takes at most about n² tests for n changes, and about 2·log₂(n) where one is to blame and every test has an answer.
    """
    known: dict[frozenset[str], Outcome] = {}

    def has_it(part: Changes) -> bool:
        key = frozenset(part)
        if key not in known:
            known[key] = test(part)
        return known[key] == "there"

    left = tuple(changes)
    parts = 2
    while len(left) >= 2:
        pieces = _split(left, parts)
        smaller = next((piece for piece in pieces if has_it(piece)), None)
        if smaller is not None:
            left, parts = smaller, 2
            continue
        complements = (tuple(change for change in left if change not in piece) for piece in pieces)
        rest = next(filter(has_it, complements), None) if parts > 2 else None
        if rest is not None:
            left, parts = rest, max(parts - 1, 2)
            continue
        if parts >= len(left):
            break
        parts = min(len(left), 2 * parts)
    return left


def _split(changes: Changes, parts: int) -> list[Changes]:
    # Into `parts` of nearly the same size, in their order.
    size, larger = divmod(len(changes), parts)
    pieces, start = [], 0
    for number in range(parts):
        end = start + size + (number < larger)
        pieces.append(changes[start:end])
        start = end
    return pieces

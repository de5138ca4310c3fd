"""Delta debugging: the smallest part of a set of changes that still makes a difference.

Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on Software
Engineering 28 (2002), algorithm ddmin, and Zeller, "Yesterday, my program worked. Today, it does not. Why?" (1999)
for its use on changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ajuste_stats.bisection import Outcome

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

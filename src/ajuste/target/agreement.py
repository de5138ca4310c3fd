"""Repeating what is almost always exact until two results agree.

With several virtual CPUs QEMU's main thread can, rarely, run a timer that the CPUs' thread should have run, and then
the CPUs take turns in another order (see docs/determinism.md). The result that occurs twice is the undisturbed one:
disturbed ones hardly ever resemble each other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

_T = TypeVar("_T")

MOST_RUNS = 6


def until_two_agree(run: Callable[[], _T], essence: Callable[[_T], Hashable | None]) -> tuple[_T, bool]:
    """Call ``run`` until two results have the same ``essence``; return the later one and True.

    A result whose essence is ``None`` (it failed) is returned at once, with True. After ``MOST_RUNS`` the last one is
    returned, with False.
    """
    seen: set[Hashable] = set()
    while True:
        result = run()
        key = essence(result)
        if key is None or key in seen:
            return result, True
        seen.add(key)
        if len(seen) == MOST_RUNS:
            return result, False

"""Several questions at once: error rates that hold for all of them together."""

from __future__ import annotations

from collections.abc import Sequence


def bonferroni(confidence: float, comparisons: int) -> float:
    """Return the error rate of one of so many ``comparisons`` that together hold with ``confidence``."""
    return (1 - confidence) / max(1, comparisons)


def holm(p_values: Sequence[float | None], level: float) -> list[bool]:
    """Return which of ``p_values`` are significant together at ``level``; ``None`` is no test.

    Holm 1979, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6: the
    chance that any true hypothesis is among those is at most ``level``, however the tests depend on each other.
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    significant = [False] * len(p_values)
    for rank, (p, place) in enumerate(tested):
        if p > level / (len(tested) - rank):
            break
        significant[place] = True
    return significant

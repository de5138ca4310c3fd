"""The best division of points into stretches, by ruptures' PELT (Killick, Fearnhead and Eckley 2012)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

Cost = Callable[[int, int], float]
"""What the points from the first place to before the second one cost as one stretch."""


def partition(count: int, cost: Cost, penalty: float) -> list[int]:
    """Where each stretch of ``count`` points ends: those for which the costs and a ``penalty`` a stretch are least."""
    ends: list[int] = _pelt()(custom_cost=_cost_class()(cost), min_size=1, jump=1).fit_predict(
        np.zeros((count, 1)), pen=penalty
    )
    return ends


@cache
def _pelt() -> Any:
    from ruptures import Pelt  # not at the top: it takes a noticeable part of a second, and few studies need it

    return Pelt


@cache
def _cost_class() -> Any:
    from ruptures.base import BaseCost

    class GivenCost(BaseCost):  # type: ignore[misc]
        model = "given"
        min_size = 1

        def __init__(self, cost: Cost) -> None:
            self._cost = cost

        def fit(self, signal: Any) -> GivenCost:
            self.signal = signal
            return self

        def error(self, start: int, end: int) -> float:
            return self._cost(start, end)

    return GivenCost

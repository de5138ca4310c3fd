"""Trends: whether a metric moves strictly in one direction from level to level of one numeric factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from ajuste.analysis.effects import Effect, effect
from ajuste.analysis.pairs import Trials, clean_trials, pairs
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Factor

FEWEST_LEVELS = 3


@dataclass(frozen=True)
class Trend:
    """``order`` has the configurations by rising level. ``steps`` are the effects from each to the next.

    ``unit`` is that of the levels. ``direction`` is that of all the estimates together, ``None`` if they do not agree;
    ``certain`` says that every step is statistically significant.
    """

    factor: str
    levels: tuple[str, ...]
    order: tuple[str, ...]
    steps: tuple[Effect, ...]
    unit: str = ""

    @property
    def direction(self) -> Literal["rises", "falls"] | None:
        if all(step.interval.mean > 0 for step in self.steps):
            return "rises"
        return "falls" if all(step.interval.mean < 0 for step in self.steps) else None

    @property
    def certain(self) -> bool:
        return self.direction is not None and all(
            step.interval.low > 0 or step.interval.high < 0 for step in self.steps
        )


def trend(
    factors: Sequence[Factor],
    configurations: Sequence[Configuration],
    trials: Trials,
    metric: Metric,
    alpha: float,
    unit: str = "",
    *,
    order_matters: bool = True,
) -> Trend | None:
    """The trend of ``metric``; ``None`` unless there is exactly one factor that varies, with three numeric levels.

    Each step has an interval of error rate ``alpha``. That the metric moves strictly claims all steps at once and is
    wrong only if one of them is, so that claim's own error rate is no more than ``alpha`` (an intersection-union
    test; Berger 1982). For ``order_matters`` see ``analysis.pairs``.
    """
    varied = [factor for factor in factors if len(factor.levels) > 1]
    if len(varied) != 1 or len(varied[0].levels) < FEWEST_LEVELS:
        return None
    name = varied[0].name
    try:
        ordered = sorted(configurations, key=lambda c: float(c.levels[name]))
    except ValueError:
        return None
    clean = clean_trials(trials)
    steps = []
    for one, two in pairwise(ordered):
        both = pairs(clean, one.name, two.name, metric.column, order_matters=order_matters)
        step = effect(both, metric, alpha)
        if step is None:
            return None
        steps.append(step)
    return Trend(name, tuple(c.levels[name] for c in ordered), tuple(c.name for c in ordered), tuple(steps), unit)


# The best division of points into stretches, by ruptures' PELT (Killick, Fearnhead and Eckley 2012).

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

"""Trends: whether a metric moves strictly in one direction from level to level of one numeric factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

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


# The best division of points into stretches, by dynamic programming (Jackson and others 2005, "An algorithm for optimal
# partitioning of data on an interval", IEEE Signal Processing Letters 12).

Cost = Callable[[int, int], float]
"""What the points from the first place to before the second one cost as one stretch."""


def partition(count: int, cost: Cost, penalty: float) -> list[int]:
    """Where each stretch of ``count`` points ends: those for which the costs and a ``penalty`` a stretch are least."""
    least = [0.0]
    begins = [0]
    for end in range(1, count + 1):
        all_costs = [least[start] + cost(start, end) + penalty for start in range(end)]
        least.append(min(all_costs))
        begins.append(all_costs.index(least[-1]))
    ends = [count]
    while begins[ends[0]] > 0:
        ends.insert(0, begins[ends[0]])
    return ends

"""Trends: a metric over the levels of one factor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from ajuste.analysis.pairs import Trials, clean_trials, pairs
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Factor
from ajuste_stats.effects import Effect, effect

FEWEST_LEVELS: Final = 3


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
    """Return the trend of ``metric``; ``None`` unless exactly one factor varies, with at least three numeric levels.

    Each step has an interval of error rate ``alpha``. That the metric moves strictly claims all steps at once and is
    wrong only if one of them is, so that claim's own error rate is no more than ``alpha`` (an intersection-union test;
    Berger 1982). For ``order_matters`` see ``analysis.pairs``.
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
    for lower, upper in pairwise(ordered):
        both = pairs(clean, lower.name, upper.name, metric.column, order_matters=order_matters)
        step = effect(both, metric, alpha)
        if step is None:
            return None
        steps.append(step)
    return Trend(name, tuple(c.levels[name] for c in ordered), tuple(c.name for c in ordered), tuple(steps), unit)

"""Guards: whether a value is as it must be, by a limit or beside what is usual under the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Final

from ajuste.model.live import Guard
from ajuste.model.metric import Metric
from ajuste.model.wording import amount

FEWEST_BASELINES: Final = 3
"""Values under the baseline that a guard relative to it needs."""
# Standard deviations of the baseline's values that count as noise.
_NOISE: Final = 3.0


def holds(guard: Guard, value: float) -> bool:
    """Return whether ``value`` is as a guard with a sign wants it."""
    match guard.sign:
        case "<":
            return value < guard.limit
        case "<=":
            return value <= guard.limit
        case ">":
            return value > guard.limit
        case _:
            return value >= guard.limit


def beyond_limit(guard: Guard, metric: Metric, value: float) -> str:
    """Return what ``value`` is, where a guard with a sign does not hold; empty otherwise."""
    return "" if holds(guard, value) else f"{metric.name} is {amount(value, metric.unit)}"


def worse_than_usual(guard: Guard, metric: Metric, value: float, known: Sequence[float]) -> str:
    """Return what ``value`` is, where it is worse than under the baseline (``known``) by more than a guard without a
    sign allows, and by more than noise; empty otherwise, and where too little is known.
    """
    if len(known) < FEWEST_BASELINES:
        return ""
    usual = fmean(known)
    worse = value - usual if metric.direction == "lower" else usual - value
    if worse <= guard.limit * abs(usual) + _NOISE * stdev(known):
        return ""
    return f"{metric.name} is {amount(value, metric.unit)}, {amount(usual, metric.unit)} under the baseline"

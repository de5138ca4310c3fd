"""How well a mean is known, where one configuration is described and compared with nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.effects import SMALLEST_RELATIVE_STEP
from ajuste.analysis.pairs import Clean, Trials, clean_trials
from ajuste.analysis.sequence import Interval, interval_between, mean_interval, quantile_bounds, values_needed
from ajuste.model.metric import Metric

MOST_RUNS = 10_000
"""Beyond this many runs a prediction is not worth giving."""


@dataclass(frozen=True)
class Precision:
    """The mean of ``metric`` with its anytime-valid ``interval`` of error rate ``alpha``; ``None`` without a clean
    trial. ``wanted`` is the half width that is good enough.
    """

    metric: Metric
    interval: Interval | None
    wanted: float
    alpha: float

    @property
    def known(self) -> bool:
        return self.interval is not None and self.interval.half_width <= self.wanted

    @property
    def more_runs(self) -> int | None:
        """About how many more runs would be enough, were mean and spread to stay as they are."""
        if self.interval is None or self.interval.n < 2 or math.isnan(self.interval.variance):
            return None
        n = self.interval.n
        needed = values_needed(self.interval.variance * n / (n - 1), self.wanted, self.alpha, most=MOST_RUNS)
        return None if needed is None else max(1, needed - n)


def precisions(
    trials: Trials, metrics: Sequence[Metric], *, confidence: float, smallest_effect: float
) -> tuple[Precision, ...]:
    """How well the mean of each of ``metrics`` is known; all intervals together hold with ``confidence``.

    Good enough is ``smallest_effect`` of the mean, and one step of the figure where the mean is 0.
    """
    clean = clean_trials(trials)
    alpha = (1 - confidence) / max(1, len(metrics))
    return tuple(_precision(_all_values(clean, metric.column), metric, alpha, smallest_effect) for metric in metrics)


def interval_of(values: Sequence[float] | NDArray[np.float64], metric: Metric, alpha: float) -> Interval:
    """The interval for the mean of ``values``, at least one, with the floor of ``analysis.effects``, or for their
    quantile if that is what ``metric`` is.
    """
    table = np.asarray(values, dtype=np.float64)
    step = metric.resolution or SMALLEST_RELATIVE_STEP * float(np.max(np.abs(table)))
    if metric.quantile is not None:
        low, high = quantile_bounds(table, metric.quantile, alpha)
        return interval_between(len(table), float(np.quantile(table, metric.quantile)), low - step / 2, high + step / 2)
    return mean_interval(table, alpha=alpha, floor=step**2 / 12)


def _all_values(clean: Clean, metric: str) -> NDArray[np.float64]:
    own = [clean.values(name, metric) for name in clean.measured.configuration.values]
    return np.concatenate(own) if own else np.array([], np.float64)


def _precision(values: NDArray[np.float64], metric: Metric, alpha: float, smallest_effect: float) -> Precision:
    if not len(values):
        return Precision(metric, None, 0.0, alpha)
    interval = interval_of(values, metric, alpha)
    return Precision(metric, interval, smallest_effect * abs(interval.mean) or metric.resolution, alpha)


# How many blocks an effect needs before anything is measured.


MOST_BLOCKS: Final = 10_000
"""Beyond this many blocks a prediction is not worth giving."""


def pair_variance(run_spread: float) -> float:
    """The variance of the log ratio of two independent runs that each scatter by ``run_spread`` (0.01 is 1 %)."""
    return 2 * math.log1p(run_spread) ** 2


def blocks_needed(effect: float, variance: float, alpha: float) -> int | None:
    """About how many blocks tell an ``effect`` (0.02 is 2 %) from none at error rate ``alpha``, if the log ratios
    within blocks have that ``variance``: those after which the interval of ``analysis.sequence`` is narrow enough.

    ``None`` beyond ``MOST_BLOCKS``.
    """
    return values_needed(variance, math.log1p(effect), alpha, most=MOST_BLOCKS)

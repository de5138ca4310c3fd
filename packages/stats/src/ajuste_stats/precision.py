"""Precision of a mean or a quantile, and how many more values would be enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ajuste_stats.confidence_sequences import (
    Interval,
    interval_between,
    mean_interval,
    quantile_bounds,
    values_needed,
    widened,
)
from ajuste_stats.rounding import figure_step, is_count, rounding_error
from ajuste_stats.sign_intervals import wider_in_time
from ajuste_stats.terms import Quantity

MOST_RUNS: Final = 10_000
"""Beyond this many runs a prediction is not worth giving."""
UNDOUBTED: Final = 25
"""Fewer runs of a single treatment do not show whether they resemble each other: no order protects their mean.

If they seem to, that many times the factor by which the interval is wider for it.
"""
DOUBT: Final = math.sqrt((1 + 0.9) / (1 - 0.9))
"""The factor for runs whose correlation with the one before is 0.9."""

QuantityT = TypeVar("QuantityT", bound=Quantity)


@dataclass(frozen=True)
class Precision(Generic[QuantityT]):
    """The mean of ``quantity`` with its anytime-valid ``interval``; ``None`` without a value.

    ``alpha`` is the error rate of the interval, ``wanted`` the half width that is good enough. ``doubt`` is the factor
    by which the interval may be too narrow: fewer than ``until`` runs do not show how much they resemble each other.
    """

    quantity: QuantityT
    interval: Interval | None
    wanted: float
    alpha: float
    doubt: float = 1.0
    until: int = 0

    @property
    def known(self) -> bool:
        """Return whether the interval is as narrow as wanted, in doubt too."""
        return self.interval is not None and self.doubt * self.interval.half_width <= self.wanted

    @property
    def more_runs(self) -> int | None:
        """Return about how many more runs would be enough at an unchanged mean and spread."""
        if self.interval is None or self.interval.n < 2 or math.isnan(self.interval.variance):
            return None
        n = self.interval.n
        variance = self.interval.variance * n / (n - 1)
        needed = values_needed(variance, self.wanted, self.alpha, most=MOST_RUNS)
        if needed is None:
            return None
        in_doubt = values_needed(self.doubt**2 * variance, self.wanted, self.alpha, most=MOST_RUNS)
        return max(1, max(needed, min(self.until, in_doubt or self.until)) - n)


def mean_precision(
    values: NDArray[np.float64],
    quantity: QuantityT,
    alpha: float,
    smallest_effect: float,
    *,
    order_matters: bool = True,
) -> Precision[QuantityT]:
    """Return how well the mean of ``values`` (a ``quantity``, in the order of time) is known, at error rate ``alpha``.

    Good enough is ``smallest_effect`` of the mean, and one step of the figure where the mean is 0. Where
    ``order_matters`` the interval is wider if values resemble the ones before: they carry less information than as many
    independent ones.
    """
    if not len(values):
        return Precision(quantity, None, 0.0, alpha)
    interval, doubt, until = estimate_interval(values, quantity, alpha), 1.0, 0
    if order_matters and quantity.quantile is None and math.isfinite(interval.half_width):
        times = float(wider_in_time(values))
        interval = replace(interval, half_width=times * interval.half_width, variance=times**2 * interval.variance)
        until = math.ceil(UNDOUBTED * times)
        doubt = max(1.0, DOUBT / times) if len(values) < until else 1.0
    wanted = smallest_effect * abs(interval.mean) or quantity.resolution
    return Precision(quantity, interval, wanted, alpha, doubt, until)


def estimate_interval(values: Sequence[float] | NDArray[np.float64], quantity: Quantity, alpha: float) -> Interval:
    """Return the interval for the mean or quantile of ``values``, at least one, with the floor of ``effects``."""
    table = np.asarray(values, dtype=np.float64)
    step = figure_step(quantity, table)
    if quantity.quantile is not None:
        low, high = quantile_bounds(table, quantity.quantile, alpha)
        middle = float(np.quantile(table, quantity.quantile))
        return interval_between(len(table), middle, low - step / 2, high + step / 2)
    interval = mean_interval(table, alpha=alpha, floor=step**2 / 12)
    return interval if is_count(quantity, table) else widened(interval, rounding_error(table, step))


MOST_BLOCKS: Final = 10_000
"""Beyond this many blocks a prediction is not worth giving."""


def pair_variance(run_spread: float) -> float:
    """Return the variance of the log ratio of two independent runs with a scatter of ``run_spread`` (0.01 is 1 %)."""
    return 2 * math.log1p(run_spread) ** 2


def blocks_needed(effect: float, variance: float, alpha: float) -> int | None:
    """Return about how many blocks tell an ``effect`` (0.02 is 2 %) from none at error rate ``alpha``.

    That many make the interval of ``confidence_sequences`` narrow enough if the log ratios within blocks have that
    ``variance``. ``None`` beyond ``MOST_BLOCKS``.
    """
    return values_needed(variance, math.log1p(effect), alpha, most=MOST_BLOCKS)

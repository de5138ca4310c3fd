"""Summaries: the clean trials of each configuration in a few figures, and how well their mean is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.confidence_sequences import (
    Interval,
    interval_between,
    mean_interval,
    quantile_bounds,
    values_needed,
    widened,
)
from ajuste.analysis.pairs import Clean, Trials, clean_trials
from ajuste.analysis.rounding import figure_step, is_count, rounding_error
from ajuste.analysis.sign_intervals import wider_in_time
from ajuste.model.event import Written
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Summary
from ajuste.model.trial import Configuration, Factor
from ajuste.model.tunable import same_value

MOST_RUNS = 10_000
"""Beyond this many runs a prediction is not worth giving."""
UNDOUBTED: Final = 25
"""Fewer runs of a single configuration do not show whether they resemble each other: no order protects their mean.

If they seem to, that many times the factor by which the interval is wider for it.
"""
DOUBT: Final = math.sqrt((1 + 0.9) / (1 - 0.9))
"""The factor for runs whose correlation with the one before is 0.9."""


@dataclass(frozen=True)
class Precision:
    """The mean of ``metric`` with its anytime-valid ``interval``; ``None`` without a clean trial.

    ``alpha`` is the error rate of the interval, ``wanted`` the half width that is good enough. ``doubt`` is the factor
    by which the interval may be too narrow: fewer than ``until`` runs do not show how much they resemble each other.
    """

    metric: Metric
    interval: Interval | None
    wanted: float
    alpha: float
    doubt: float = 1.0
    until: int = 0

    @property
    def known(self) -> bool:
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


def precisions(
    trials: Trials,
    metrics: Sequence[Metric],
    *,
    confidence: float,
    smallest_effect: float,
    order_matters: bool = True,
) -> tuple[Precision, ...]:
    """Return how well the mean of each of ``metrics`` is known; all intervals together hold with ``confidence``.

    Good enough is ``smallest_effect`` of the mean, and one step of the figure where the mean is 0. Where
    ``order_matters`` the interval is wider if trials resemble the ones before: they carry less information than as many
    independent ones.
    """
    clean = clean_trials(trials)
    alpha = (1 - confidence) / max(1, len(metrics))
    known = []
    for metric in metrics:
        samples = [clean.values(name, metric.column) for name in clean.measured.configuration.values]
        interval, zone, doubt, until = None, 0.0, 1.0, 0
        if sum(map(len, samples)):
            values = np.concatenate(samples)
            interval = estimate_interval(values, metric, alpha)
            if order_matters and metric.quantile is None and math.isfinite(interval.half_width):
                times = float(wider_in_time(values))
                interval = replace(
                    interval, half_width=times * interval.half_width, variance=times**2 * interval.variance
                )
                until = math.ceil(UNDOUBTED * times)
                doubt = max(1.0, DOUBT / times) if len(values) < until else 1.0
            zone = smallest_effect * abs(interval.mean) or metric.resolution
        known.append(Precision(metric, interval, zone, alpha, doubt, until))
    return tuple(known)


def estimate_interval(values: Sequence[float] | NDArray[np.float64], metric: Metric, alpha: float) -> Interval:
    """Return the interval for the mean or quantile of ``values``, at least one, with the floor of ``effects``."""
    table = np.asarray(values, dtype=np.float64)
    step = figure_step(metric, table)
    if metric.quantile is not None:
        low, high = quantile_bounds(table, metric.quantile, alpha)
        return interval_between(len(table), float(np.quantile(table, metric.quantile)), low - step / 2, high + step / 2)
    interval = mean_interval(table, alpha=alpha, floor=step**2 / 12)
    return interval if is_count(metric, table) else widened(interval, rounding_error(table, step))


MOST_BLOCKS: Final = 10_000
"""Beyond this many blocks a prediction is not worth giving."""


def pair_variance(run_spread: float) -> float:
    """Return the variance of the log ratio of two independent runs with a scatter of ``run_spread`` (0.01 is 1 %)."""
    return 2 * math.log1p(run_spread) ** 2


def blocks_needed(effect: float, variance: float, alpha: float) -> int | None:
    """Return about how many blocks tell an ``effect`` (0.02 is 2 %) from none at error rate ``alpha``.

    That many make the interval of ``analysis.confidence_sequences`` narrow enough if the log ratios within blocks have
    that ``variance``. ``None`` beyond ``MOST_BLOCKS``.
    """
    return values_needed(variance, math.log1p(effect), alpha, most=MOST_BLOCKS)


@dataclass(frozen=True)
class AsRun:
    """Factors and configurations by the levels that the kernel made; of equal ones the first stands for all."""

    factors: tuple[Factor, ...]
    configurations: tuple[Configuration, ...]
    notes: tuple[str, ...] = ()


def as_run(factors: Sequence[Factor], configurations: Sequence[Configuration], measured: Sequence[Measured]) -> AsRun:
    """Return what was really run: numbers that every trial read back alike take the place of levels."""
    read = {row.name: row.read_back for row in measured}
    ranged = {factor.name for factor in factors if factor.span is not None}
    became = {
        (name, level): read[configuration.name][name]
        for configuration in configurations
        for name, level in configuration.levels.items()
        if name in ranged and _is_another_number(level, read[configuration.name].get(name, level))
    }
    if not became:
        return AsRun(tuple(factors), tuple(configurations))
    by_levels: dict[tuple[str, ...], Configuration] = {}
    notes = [
        f"{name}: {level} became {value}; the results show it as {value}" for (name, level), value in became.items()
    ]
    for configuration in configurations:
        levels = {name: became.get((name, level), level) for name, level in configuration.levels.items()}
        first = by_levels.setdefault(tuple(levels.values()), configuration.model_copy(update={"levels": levels}))
        if first.name != configuration.name:
            notes.append(f"{configuration.name} became the same as {first.name} in the kernel")
            if configuration.baseline:  # others are compared with it by its name
                by_levels[tuple(levels.values())] = configuration.model_copy(update={"levels": levels})
    factors_as_run = []
    for factor in factors:
        read_back = {level: became.get((factor.name, level), level) for level in (*factor.levels, factor.baseline)}
        different = tuple(dict.fromkeys(read_back[level] for level in factor.levels))
        baseline = read_back[factor.baseline]
        factors_as_run.append(factor.model_copy(update={"levels": different, "baseline": baseline}))
    return AsRun(tuple(factors_as_run), tuple(by_levels.values()), tuple(notes))


def _is_another_number(level: str, read: str) -> bool:
    try:
        return int(level) != int(read)
    except ValueError:
        return False


MAD_SCALE: Final = 1.4826
"""1/Φ⁻¹(3/4): for normal values the standard deviation is that many median absolute deviations."""

FAR: Final = 10.0
"""The modified z-score of an outlier (Iglewicz and Hoaglin 1993, "How to Detect and Handle Outliers"), as in hyperfine.

The book's 3.5 would flag one run in a hundred of every skewed, undisturbed benchmark.
"""


def distances_from_median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far each is from the median of all."""
    return np.abs(values - median(values))


def far_places(distances: NDArray[np.float64]) -> list[int]:
    """Return the places of the outliers, by the distances from the median in units of their own median."""
    unit = MAD_SCALE * median(distances)
    if unit == 0:
        return []
    return [int(place) for place in np.flatnonzero(distances > FAR * unit)]


def median(values: NDArray[np.float64]) -> float:
    """Return the median faster than ``numpy.median``, of one or more values, none of them NaN."""
    upper = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, upper)[upper])
    parted = np.partition(values, (upper - 1, upper))
    return float((parted[upper - 1] + parted[upper]) / 2)


def summarise(values: Sequence[float] | NDArray[np.float64]) -> Summary:
    """Return ``values`` in a few figures. ``sd`` is the sample standard deviation (n − 1), ``sem`` that of the mean."""
    table = np.asarray(values, dtype=np.float64)
    n = len(table)
    sd = float(np.std(table, ddof=1)) if n > 1 else None
    return Summary(
        n=n,
        mean=float(np.mean(table)),
        median=median(table),
        sd=sd,
        sem=sd / n**0.5 if sd is not None else None,
        minimum=float(np.min(table)),
        maximum=float(np.max(table)),
    )


def with_intervals(configurations: tuple[Measured, ...], precisions: Sequence[Precision]) -> tuple[Measured, ...]:
    """Return the only configuration with the intervals of ``precisions``; several as they are."""
    if len(configurations) != 1:
        return configurations
    only = configurations[0]
    metrics = dict(only.metrics)
    for precision in precisions:
        if precision.interval is not None and math.isfinite(precision.interval.half_width):
            update = {"low": precision.interval.low, "high": precision.interval.high}
            metrics[precision.metric.name] = metrics[precision.metric.name].model_copy(update=update)
    return (only.model_copy(update={"metrics": metrics}),)


def measured(configurations: Sequence[Configuration], trials: Trials) -> tuple[Measured, ...]:
    """Return every configuration with its summaries, in order.

    ``read_back`` has the value of each tunable as the kernel reported it after the write, all of them where they differ
    between trials. A metric is *not supported* only if no clean trial has it.
    """
    clean = clean_trials(trials)
    return tuple(_measured(configuration, clean) for configuration in configurations)


def _measured(configuration: Configuration, clean: Clean) -> Measured:
    name, columns = configuration.name, clean.measured
    values = {metric: clean.values(name, metric) for metric in columns.metrics}
    missing: dict[str, str] = {}
    for reasons in columns.not_supported.among(clean.of(name)):
        missing.update(reasons)
    return Measured(
        name=name,
        levels=configuration.levels,
        baseline=configuration.baseline,
        against=configuration.against,
        read_back=_read_back(columns.written.among(columns.of(name))),
        metrics={metric: summarise(sample) for metric, sample in values.items() if len(sample)},
        not_supported={metric: why for metric, why in missing.items() if not len(values.get(metric, ()))},
    )


def _read_back(different: Sequence[Sequence[Written]]) -> dict[str, str]:
    seen: dict[str, list[str]] = {}
    for writes in different:
        for write in writes:
            values = seen.setdefault(write.tunable, [])
            value = write.asked if same_value(write.after, write.asked) else write.after
            if value not in values:
                values.append(value)
    return {name: ", ".join(values) for name, values in seen.items()}

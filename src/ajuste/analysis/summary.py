"""Summaries: the clean trials of each configuration in a few figures, and how well their mean is known."""

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
from ajuste.model.event import Written
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Summary
from ajuste.model.trial import Configuration, Factor
from ajuste.model.tunable import same_value

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


# What was really run: levels as the kernel made them, where it rounded or clamped those of a range.


@dataclass(frozen=True)
class AsRun:
    """``factors`` and ``configurations`` by the levels that the kernel made of those that were written. Of several
    configurations that became the same one the first stands for all; ``notes`` say so.
    """

    factors: tuple[Factor, ...]
    configurations: tuple[Configuration, ...]
    notes: tuple[str, ...] = ()


def as_run(factors: Sequence[Factor], configurations: Sequence[Configuration], measured: Sequence[Measured]) -> AsRun:
    """Only numbers that every trial read back alike take the place of levels; whatever else differs stays as asked."""
    read = {one.name: one.read_back for one in measured}
    ranged = {factor.name for factor in factors if factor.span is not None}
    became = {
        (name, level): read[one.name][name]
        for one in configurations
        for name, level in one.levels.items()
        if name in ranged and _is_another_number(level, read[one.name].get(name, level))
    }
    if not became:
        return AsRun(tuple(factors), tuple(configurations))
    found: dict[tuple[str, ...], Configuration] = {}
    notes = [
        f"{name}: {level} became {value}; the results show it as {value}" for (name, level), value in became.items()
    ]
    for one in configurations:
        levels = {name: became.get((name, level), level) for name, level in one.levels.items()}
        first = found.setdefault(tuple(levels.values()), one.model_copy(update={"levels": levels}))
        if first.name != one.name:
            notes.append(f"{one.name} became the same as {first.name} in the kernel")
            if one.baseline:  # Whatever is compared with it must find it.
                found[tuple(levels.values())] = one.model_copy(update={"levels": levels})
    return AsRun(
        tuple(
            _factor(factor, {level: v for (name, level), v in became.items() if name == factor.name})
            for factor in factors
        ),
        tuple(found.values()),
        tuple(notes),
    )


def _factor(factor: Factor, became: dict[str, str]) -> Factor:
    levels = tuple(dict.fromkeys(became.get(level, level) for level in factor.levels))
    return factor.model_copy(update={"levels": levels, "baseline": became.get(factor.baseline, factor.baseline)})


def _is_another_number(level: str, read: str) -> bool:
    try:
        return int(level) != int(read)
    except ValueError:
        return False


# Single values that are far from all others.
#
# The modified z-score: the distance from the median in units of the median absolute deviation, scaled so that for
# normal values the unit is a standard deviation (Iglewicz and Hoaglin 1993, "How to Detect and Handle Outliers").


MAD_SCALE: Final = 1.4826
"""1/Φ⁻¹(3/4): for normal values the standard deviation is so many median absolute deviations."""

FAR: Final = 10.0
"""From here on a value is told; hyperfine has the same threshold. The book's 3.5 would tell of one run in a hundred
of every skewed, undisturbed benchmark."""


def distances_from_median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far each is from the median of all."""
    return np.abs(values - median(values))


def far_places(distances: NDArray[np.float64]) -> list[int]:
    """The places of the outliers, by the distances from the median."""
    unit = MAD_SCALE * median(distances)
    if unit == 0:
        return []
    return [int(place) for place in np.flatnonzero(distances > FAR * unit)]


def median(values: NDArray[np.float64]) -> float:
    """As ``numpy.median``, which takes several times as long: of one or more values, none of them NaN."""
    upper = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, upper)[upper])
    parted = np.partition(values, (upper - 1, upper))
    return float((parted[upper - 1] + parted[upper]) / 2)


def summarise(values: Sequence[float] | NDArray[np.float64]) -> Summary:
    """``values`` in a few figures. ``sd`` is the sample standard deviation (n − 1), ``sem`` that of the mean."""
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


def with_intervals(configurations: tuple[Measured, ...], means: Sequence[Precision]) -> tuple[Measured, ...]:
    """With the intervals of the ``means`` of the only configuration; as they are if there are several."""
    if len(configurations) != 1:
        return configurations
    only = configurations[0]
    metrics = dict(only.metrics)
    for one in means:
        if one.interval is not None and math.isfinite(one.interval.half_width):
            update = {"low": one.interval.low, "high": one.interval.high}
            metrics[one.metric.name] = metrics[one.metric.name].model_copy(update=update)
    return (only.model_copy(update={"metrics": metrics}),)


def measured(configurations: Sequence[Configuration], trials: Trials) -> tuple[Measured, ...]:
    """Every configuration with its summaries, in order.

    ``read_back`` has the value of each tunable as the kernel reported it after the write, all of them where they
    differ between trials. A metric is *not supported* only if no clean trial has it.
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
        read_back=_read_back(columns.written.among(columns.of(name))),
        metrics={metric: summarise(found) for metric, found in values.items() if len(found)},
        not_supported={metric: why for metric, why in missing.items() if not len(values.get(metric, ()))},
    )


def _read_back(different: Sequence[Sequence[Written]]) -> dict[str, str]:
    seen: dict[str, list[str]] = {}
    for writes in different:
        for write in writes:
            values = seen.setdefault(write.tunable, [])
            shown = write.asked if same_value(write.after, write.asked) else write.after
            if shown not in values:
                values.append(shown)
    return {name: ", ".join(values) for name, values in seen.items()}

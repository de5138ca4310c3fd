"""Summaries: the clean trials of each configuration in a few figures, and how well their mean is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.pairs import Clean, Trials, clean_trials
from ajuste.model.event import Written
from ajuste.model.measurements import Measurements
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Summary
from ajuste.model.trial import Configuration, Factor
from ajuste.model.tunable import same_value
from ajuste_stats.outliers import median
from ajuste_stats.precision import Precision, mean_precision


def precisions(
    trials: Trials,
    metrics: Sequence[Metric],
    *,
    confidence: float,
    smallest_effect: float,
    order_matters: bool = True,
) -> tuple[Precision[Metric], ...]:
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
        values = np.concatenate([np.empty(0), *samples])
        known.append(mean_precision(values, metric, alpha, smallest_effect, order_matters=order_matters))
    return tuple(known)


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
        if name in ranged and _is_another_number(level, read.get(configuration.name, {}).get(name, level))
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


def with_intervals(
    configurations: tuple[Measured, ...], precisions: Sequence[Precision[Metric]]
) -> tuple[Measured, ...]:
    """Return the only configuration with the intervals of ``precisions``; several as they are."""
    if len(configurations) != 1:
        return configurations
    only = configurations[0]
    metrics = dict(only.metrics)
    for known in precisions:
        if known.interval is not None and math.isfinite(known.interval.half_width):
            update = {"low": known.interval.low, "high": known.interval.high}
            metrics[known.quantity.name] = metrics[known.quantity.name].model_copy(update=update)
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


def with_quantile_columns(measured: Measurements, metrics: Sequence[Metric]) -> Measurements:
    """Return ``measured`` with the single values behind each quantile of ``metrics`` as a column."""
    quantiles = [metric for metric in metrics if metric.quantile is not None and metric.column in measured.metrics]
    if not quantiles:
        return measured
    return replace(measured, metrics={**measured.metrics, **{m.name: measured.metrics[m.column] for m in quantiles}})


def with_quantiles(configurations: Sequence[Measured], clean: Clean, metrics: Sequence[Metric]) -> tuple[Measured, ...]:
    """Return the summaries with each quantile of ``metrics`` in place of the mean; it has no standard error."""
    quantiles = [metric for metric in metrics if metric.quantile is not None]
    return tuple(_with_quantiles(configuration, clean, quantiles) for configuration in configurations)


def _with_quantiles(configuration: Measured, clean: Clean, metrics: Sequence[Metric]) -> Measured:
    summaries = dict(configuration.metrics)
    missing = dict(configuration.not_supported)
    for metric in metrics:
        if metric.name in summaries and metric.quantile is not None:
            values = clean.values(configuration.name, metric.column)
            update = {"mean": float(np.quantile(values, metric.quantile)), "sd": None, "sem": None}
            summaries[metric.name] = summaries[metric.name].model_copy(update=update)
        elif metric.column in missing:
            missing[metric.name] = missing[metric.column]
    return configuration.model_copy(update={"metrics": summaries, "not_supported": missing})

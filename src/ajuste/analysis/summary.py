"""Summaries: the clean trials of each configuration in a few figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.outliers import median
from ajuste.analysis.pairs import Clean, Trials, clean_trials
from ajuste.analysis.precision import Precision
from ajuste.model.event import Written
from ajuste.model.results import Measured, Summary
from ajuste.model.trial import Configuration
from ajuste.model.tunable import same_value


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

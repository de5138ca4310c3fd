"""Summaries: the clean trials of each configuration in a few figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ajuste.analysis.pairs import Cell, clean_trials
from ajuste.analysis.precision import Precision
from ajuste.model.configuration import Configuration
from ajuste.model.results import Measured, Summary
from ajuste.model.trial import Trial
from ajuste.model.value import same_value


def summarise(values: Sequence[float]) -> Summary:
    """``values`` in a few figures. ``sd`` is the sample standard deviation (n − 1), ``sem`` that of the mean."""
    table = np.asarray(values, dtype=np.float64)
    n = len(table)
    sd = float(np.std(table, ddof=1)) if n > 1 else None
    return Summary(
        n=n,
        mean=float(np.mean(table)),
        median=float(np.median(table)),
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


def measured(configurations: Sequence[Configuration], trials: Sequence[Trial]) -> tuple[Measured, ...]:
    """Every configuration with its summaries, in order.

    ``read_back`` has the value of each tunable as the kernel reported it after the write, all of them where they
    differ between trials. A metric is *not supported* only if no clean trial has it.
    """
    clean = clean_trials(trials)
    return tuple(_measured(configuration, clean, trials) for configuration in configurations)


def _measured(configuration: Configuration, clean: dict[Cell, Trial], trials: Sequence[Trial]) -> Measured:
    own = [trial for (_, name), trial in sorted(clean.items()) if name == configuration.name]
    values: dict[str, list[float]] = {}
    missing: dict[str, str] = {}
    for trial in own:
        for name, value in trial.metrics.items():
            values.setdefault(name, []).append(value)
        missing.update(trial.not_supported)
    return Measured(
        name=configuration.name,
        levels=configuration.levels,
        baseline=configuration.baseline,
        read_back=_read_back([t for t in trials if t.slot.configuration == configuration.name]),
        metrics={name: summarise(found) for name, found in values.items()},
        not_supported={name: why for name, why in missing.items() if name not in values},
    )


def _read_back(trials: Sequence[Trial]) -> dict[str, str]:
    seen: dict[str, list[str]] = {}
    for trial in trials:
        for write in trial.written:
            values = seen.setdefault(write.tunable, [])
            shown = write.asked if same_value(write.after, write.asked) else write.after
            if shown not in values:
                values.append(shown)
    return {name: ", ".join(values) for name, values in seen.items()}

"""Metrics that are a quantile of another one's trials, as columns and summaries of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ajuste.analysis.pairs import Clean
from ajuste.model.measurements import Measurements
from ajuste.model.metric import Metric
from ajuste.model.results import Measured


def with_quantile_columns(measured: Measurements, metrics: Sequence[Metric]) -> Measurements:
    """``measured`` with the single values that each quantile of ``metrics`` is one of."""
    own = [metric for metric in metrics if metric.quantile is not None and metric.column in measured.metrics]
    if not own:
        return measured
    return replace(measured, metrics={**measured.metrics, **{m.name: measured.metrics[m.column] for m in own}})


def with_quantiles(configurations: Sequence[Measured], clean: Clean, metrics: Sequence[Metric]) -> tuple[Measured, ...]:
    """The summaries with each quantile of ``metrics`` where others have their mean; it has no standard error."""
    own = [metric for metric in metrics if metric.quantile is not None]
    return tuple(_with_quantiles(configuration, clean, own) for configuration in configurations)


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

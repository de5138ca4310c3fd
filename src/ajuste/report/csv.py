"""Every trial as CSV (RFC 4180): one row a trial, one column a factor and a metric, nothing left out."""

from __future__ import annotations

import csv
import io

from ajuste.model.results import Results

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def trials_csv(results: Results) -> str:
    """All trials in the order they have in ``results``, figures as exactly as they were measured.

    Columns: configuration, the factors' levels, then block, position, seed, attempt, warm_up, status, reason,
    the machine if there are several, then the metrics in their base units (``elapsed [s]``). A metric that a trial does
    not have is an empty field. Text that a spreadsheet would take for a formula gets a leading apostrophe (OWASP, "CSV
    Injection").
    """
    if results.elsewhere is not None:
        return _values_csv(results)
    levels = {configuration.name: configuration.levels for configuration in results.configurations}
    machines = ["machine"] if any(trial.machine for trial in results.trials) else []
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(
        ["configuration"]
        + [_text(factor.name) for factor in results.factors]
        + ["block", "position", "seed", "attempt", "warm_up", "status", "reason"]
        + machines
        + _metric_columns(results)
    )
    for trial in results.trials:
        own_levels = levels.get(trial.configuration, {})
        writer.writerow(
            [
                _text(trial.configuration),
                *(_text(own_levels.get(factor.name, "")) for factor in results.factors),
                trial.block,
                trial.position,
                trial.seed,
                trial.attempt,
                "yes" if trial.warm_up else "no",
                _text(trial.status),
                _text(trial.reason),
                *(_text(trial.machine) for _ in machines),
            ]
            + [_figure(trial.metrics.get(metric.name)) for metric in results.metrics]
        )
    return out.getvalue()


def _values_csv(results: Results) -> str:
    """What was measured elsewhere, with its blocks if it has any."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    blocks = ["block"] if results.blocks else []
    writer.writerow(["configuration", *blocks, *_metric_columns(results)])
    for trial in results.trials:
        figures = [_figure(trial.metrics.get(metric.name)) for metric in results.metrics]
        writer.writerow([_text(trial.configuration), *([trial.block] if blocks else []), *figures])
    return out.getvalue()


def _metric_columns(results: Results) -> list[str]:
    return [_text(f"{metric.name} [{metric.unit}]" if metric.unit else metric.name) for metric in results.metrics]


def _figure(value: float | None) -> str:
    return "" if value is None else repr(value)


def _text(text: str) -> str:
    if not text.startswith(_FORMULA_STARTS):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text

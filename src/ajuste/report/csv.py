"""Every trial as CSV (RFC 4180): one row a trial, one column a factor and a metric, nothing left out."""

from __future__ import annotations

import csv
import io

from ajuste.model.results import Results

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def trials_csv(results: Results) -> str:
    """All trials in the order they have in ``results``, figures as exactly as they were measured.

    Columns: configuration, block, position, seed, attempt, warm_up, status, reason, then the factors' levels, then the
    metrics in their base units (``elapsed [s]``). A metric that a trial does not have is an empty field. Text that a
    spreadsheet would take for a formula gets a leading apostrophe (OWASP, "CSV Injection").
    """
    levels = {configuration.name: configuration.levels for configuration in results.configurations}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(
        ["configuration", "block", "position", "seed", "attempt", "warm_up", "status", "reason"]
        + [_text(factor.name) for factor in results.factors]
        + [_text(f"{metric.name} [{metric.unit}]" if metric.unit else metric.name) for metric in results.metrics]
    )
    for trial in results.trials:
        own_levels = levels.get(trial.configuration, {})
        writer.writerow(
            [
                _text(trial.configuration),
                trial.block,
                trial.position,
                trial.seed,
                trial.attempt,
                "yes" if trial.warm_up else "no",
                _text(trial.status),
                _text(trial.reason),
            ]
            + [_text(own_levels.get(factor.name, "")) for factor in results.factors]
            + [_figure(trial.metrics.get(metric.name)) for metric in results.metrics]
        )
    return out.getvalue()


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

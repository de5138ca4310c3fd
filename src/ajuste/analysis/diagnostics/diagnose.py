"""Diagnosis of a measurement: its diagnostics, weighed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ajuste.analysis.diagnostics.residuals import compute_residuals
from ajuste.analysis.diagnostics.sentences import MEASURES, describe
from ajuste.analysis.pairs import Clean, Trials, clean_trials
from ajuste.model.diagnostic import Course, Diagnostic, Diagnostics, Naive
from ajuste.model.measurements import different
from ajuste.model.metric import Metric
from ajuste.model.results import Clock
from ajuste.model.wording import number, percent
from ajuste_stats.diagnostics import ALARMS, Finding, findings, naive, significant
from ajuste_stats.naive_errors import BATCH, LEVEL
from ajuste_stats.residuals import Residuals

MOST_PLACES: Final = 300
"""Points of a course."""


def diagnose(trials: Trials, metrics: Sequence[Metric], clock: Clock, smallest_effect: float = 0.0) -> Diagnostics:
    """Diagnose the noise of each of ``metrics``; two groups count if they differ by the ``smallest_effect``.

    Under the virtual clock every trial starts from the same snapshot, so nothing can depend on when it ran.
    """
    clean = clean_trials(trials)
    every = ((metric, compute_residuals(clean, metric)) for metric in metrics)
    noisy = [(metric, residuals) for metric, residuals in every if residuals is not None and residuals.vary]
    results = [
        (metric, residuals, finding)
        for metric, residuals in noisy
        for finding in findings(
            residuals, apart_by=_margin(clean, metric, residuals, smallest_effect), in_time=clock != "virtual"
        )
    ]
    present = significant([finding for *_, finding in results])
    in_time = [] if clock == "virtual" else noisy
    return Diagnostics(
        level=ALARMS,
        found=tuple(_diagnostic(*result, significant=there) for result, there in zip(results, present, strict=True)),
        naive=tuple(row for metric, residuals in in_time if (row := _naive(metric.name, residuals)) is not None),
        courses=tuple(_course(metric.name, residuals) for metric, residuals in in_time if residuals.blocks > 1),
    )


def _margin(clean: Clean, metric: Metric, residuals: Residuals, smallest_effect: float) -> float:
    # On the residuals' scale; of differences relative to the smallest mean.
    if residuals.scale == "ratio":
        return float(np.log1p(smallest_effect))
    means = (abs(float(np.mean(clean.values(name, metric.name)))) for name in residuals.names)
    return max(smallest_effect * min(means), metric.resolution)


def _diagnostic(metric: Metric, residuals: Residuals, finding: Finding, *, significant: bool) -> Diagnostic:
    present = significant or finding.certain
    sentence, why = describe(finding, residuals, metric.unit) if present else ("No problems found.", "")
    return Diagnostic(
        kind=finding.kind,
        metric=metric.name,
        measures=MEASURES[finding.kind],
        value=finding.value if np.isfinite(finding.value) else 0.0,
        configuration=finding.treatment,
        p_value=finding.p_value,
        present=present,
        matters=finding.matters(significant=significant),
        says=sentence,
        naive_error=finding.naive_error if present else None,
        verdict_affected=present and finding.verdict_affected,
        why=why,
    )


def _naive(metric: str, residuals: Residuals) -> Naive | None:
    # Return the verdict of two batches of equals at any moment of this very run.
    compared = naive(residuals)
    if compared is None:
        return None
    narrowing = compared.narrowing
    gain = (
        f" Within blocks a difference varies {number(narrowing)} times less." if narrowing and narrowing > 1.1 else ""
    )
    return Naive(
        metric=metric,
        batch=BATCH,
        windows=compared.windows,
        error=compared.error,
        narrowing=narrowing,
        says=f"A t test at {percent(LEVEL)} on two equal configurations, each measured {BATCH} times in a row in this "
        f"run, would have found a false difference in {percent(round(compared.error, 3))} of cases.{gain}",
    )


def _course(metric: str, residuals: Residuals) -> Course:
    places = different(np.linspace(0, residuals.blocks - 1, min(residuals.blocks, MOST_PLACES)).astype(int))
    values = residuals.block_averages[places]
    return Course(
        metric=metric,
        scale=residuals.scale,
        blocks=tuple(int(number) for number in residuals.numbers[places]),
        values=tuple(float(value) for value in (np.exp(values) if residuals.scale == "ratio" else values)),
    )

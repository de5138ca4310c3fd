"""All diagnostics of a measurement, weighed together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ajuste.analysis.diagnostics.naive import BATCH, HARM, LEVEL, error_in
from ajuste.analysis.diagnostics.order import autocorrelation, carry_over, drift, order, warm_up
from ajuste.analysis.diagnostics.residuals import DiagnosticFinding, Residuals, residuals_of
from ajuste.analysis.diagnostics.spread import bimodality, far_values, spread
from ajuste.analysis.pairs import Trials, clean_trials
from ajuste.model.diagnostic import Course, Diagnostic, Diagnostics, Naive
from ajuste.model.metric import Metric
from ajuste.model.results import Clock
from ajuste.model.wording import number, percent

ALARMS: Final = 0.05
"""The error rate of all alarms together on clean data (Holm 1979, Scandinavian Journal of Statistics 6)."""

FEWEST_TRIALS: Final = 10 * BATCH
"""With fewer the pieces of a run are too few to say how often anything happens."""
MOST_PLACES: Final = 300

_OF_SHAPE: Final = (bimodality, far_values, spread)
_OF_TIME: Final = (drift, warm_up, order, carry_over, autocorrelation)


def diagnose(trials: Trials, metrics: Sequence[Metric], clock: Clock) -> Diagnostics:
    """What is found in the noise of each of ``metrics``.

    Under the virtual clock every trial starts from the same snapshot: nothing can depend on when it ran, and nothing is
    said of that.
    """
    clean = clean_trials(trials)
    own = [left for metric in metrics if (left := residuals_of(clean, metric)) is not None and left.vary]
    tests: Sequence[Callable[[Residuals], DiagnosticFinding | None]] = (
        _OF_SHAPE if clock == "virtual" else _OF_TIME + _OF_SHAPE
    )
    found = [
        (one.metric.name, finding) for one in own for finding in (test(one) for test in tests) if finding is not None
    ]
    present = holm([finding.p_value for _, finding in found], ALARMS)
    in_time = [] if clock == "virtual" else own
    return Diagnostics(
        level=ALARMS,
        found=tuple(_diagnostic(name, one, there) for (name, one), there in zip(found, present, strict=True)),
        naive=tuple(naive for naive in map(_naive, in_time) if naive is not None),
        courses=tuple(_course(one) for one in in_time if one.blocks > 1),
    )


def holm(p_values: Sequence[float | None], level: float) -> list[bool]:
    """Which are significant together at ``level``; ``None`` is no test."""
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    significant = [False] * len(p_values)
    for rank, (p, place) in enumerate(tested):
        if p > level / (len(tested) - rank):
            break
        significant[place] = True
    return significant


def _diagnostic(metric: str, finding: DiagnosticFinding, significant: bool) -> Diagnostic:
    present = significant or finding.certain
    harmful = finding.naive_error is not None and finding.naive_error >= HARM
    return Diagnostic(
        kind=finding.kind,
        metric=metric,
        measures=finding.measures,
        value=finding.value if np.isfinite(finding.value) else 0.0,
        configuration=finding.configuration,
        p_value=finding.p_value,
        present=present,
        matters=present and (harmful or finding.spoils or finding.verdict_affected),
        says=finding.says if present else "No problems found.",
        naive_error=finding.naive_error if present else None,
        verdict_affected=present and finding.verdict_affected,
        why=finding.why if present else "",
    )


def _naive(residuals: Residuals) -> Naive | None:
    """What two batches would have said of equals at any moment of this very run."""
    if len(residuals) < FEWEST_TRIALS:
        return None
    error, windows = error_in(residuals.values)
    narrowing = _narrowing(residuals)
    gain = (
        f" Within blocks a difference varies {number(narrowing)} times less." if narrowing and narrowing > 1.1 else ""
    )
    return Naive(
        metric=residuals.metric.name,
        batch=BATCH,
        windows=windows,
        error=error,
        narrowing=narrowing,
        says=f"A t test at {percent(LEVEL)} on two equal configurations, each measured {BATCH} times in a row in this "
        f"run, would have found a false difference in {percent(round(error, 3))} of cases.{gain}",
    )


def _narrowing(residuals: Residuals) -> float | None:
    within = residuals.values - residuals.block_means[residuals.block]
    freedom = len(residuals) - len(residuals.names) - residuals.blocks + 1
    variance = float(np.sum(within**2)) / freedom if freedom > 0 else 0.0
    return residuals.sd / variance**0.5 if variance > 0 else None


def _course(residuals: Residuals) -> Course:
    places = np.unique(np.linspace(0, residuals.blocks - 1, min(residuals.blocks, MOST_PLACES)).astype(int))
    means = residuals.block_means[places]
    return Course(
        metric=residuals.metric.name,
        scale=residuals.scale,
        blocks=tuple(int(number) for number in residuals.numbers[places]),
        values=tuple(float(value) for value in (np.exp(means) if residuals.scale == "ratio" else means)),
    )

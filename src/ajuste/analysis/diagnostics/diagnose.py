"""Diagnosis of a measurement: its diagnostics, weighed together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from diptest import diptest

from ajuste.analysis.diagnostics.order import (
    BATCH,
    HARM,
    LEVEL,
    DiagnosticFinding,
    Floats,
    Residuals,
    autocorrelation,
    carry_over,
    compute_residuals,
    drift,
    error_in,
    error_of_shape,
    error_of_unequal_spread,
    order,
    variance_between,
    warm_up,
)
from ajuste.analysis.pairs import Clean, Trials, clean_trials
from ajuste.model.measurements import different
from ajuste.model.metric import Metric
from ajuste.model.results import Clock, Course, Diagnostic, Diagnostics, Naive
from ajuste.model.wording import number, percent
from ajuste_stats.multiplicity import holm

FEWEST_EACH: Final = 8


def spread(residuals: Residuals) -> DiagnosticFinding | None:
    """Return how much the standard deviations differ; ``None`` with fewer than ``FEWEST_EACH`` values of any.

    Brown and Forsythe's test (1974, JASA 69): analysis of variance of the distances from the median.
    """
    groups = residuals.by_configuration
    if len(groups) < 2 or min(map(len, groups)) < FEWEST_EACH:
        return None
    distances = np.concatenate(residuals.from_median)
    p_value, _ = variance_between(distances, np.repeat(np.arange(len(groups)), [len(group) for group in groups]))
    deviations = [float(np.std(group, ddof=1)) for group in groups]
    widest, least = int(np.argmax(deviations)), int(np.argmin(deviations))
    ratio = deviations[widest] / deviations[least] if deviations[least] > 0 else float("inf")
    scale = " on a logarithmic scale" if residuals.scale == "ratio" else ""
    times = "only the former varies at all" if ratio == float("inf") else f"{number(ratio)} times as much{scale}"
    return DiagnosticFinding(
        kind="unequal variance",
        measures="largest standard deviation over the smallest",
        value=ratio,
        p_value=p_value,
        naive_error=error_of_unequal_spread(min(ratio, 1e6)),
        configuration=residuals.names[widest],
        says=f"{residuals.names[widest]} varies more than {residuals.names[least]}: {times}.",
        why="Signs of differences assume that both have noise of one shape. Above twice the spread the interval is "
        "also as wide as normal noise needs.",
        spoils=ratio >= 2,
    )


FEWEST: Final = 20


def _dip_p_value(values: Floats) -> float:
    with warnings.catch_warnings():
        # Above 72,000 values the last row of the table holds: the dip times the root of their number has a limit.
        warnings.simplefilter("ignore", UserWarning)
        return float(diptest(values)[1])


def bimodality(residuals: Residuals, apart_by: float = 0.0) -> DiagnosticFinding | None:
    """Return the configuration whose values look most like two groups that are at least ``apart_by`` apart, on the
    residuals' scale; ``None`` with too few values of each.

    Hartigan's dip test (Hartigan and Hartigan 1985, Annals of Statistics 13) on each, Bonferroni over them. Values that
    are alike because of the figure's steps are spread evenly over a step first, or every count would look like many
    groups.
    """
    tested = [
        (_dip_p_value(spread_ties(group)) if two_groups(group)[1] >= apart_by else 1.0, place)
        for place, group in enumerate(residuals.by_configuration)
        if len(group) >= FEWEST and float(np.ptp(group)) > 0
    ]
    if not tested:
        return None
    p_value, place = min(tested)
    group, name = residuals.by_configuration[place], residuals.names[place]
    share, apart = two_groups(group)
    return DiagnosticFinding(
        kind="bimodality",
        measures="distance between the two groups",
        value=float(np.expm1(apart)) if residuals.scale == "ratio" else apart,
        p_value=min(1.0, p_value * len(tested)),
        naive_error=error_of_shape(group),
        configuration=name,
        says=f"The values of {name} fall into two groups, {residuals.say(apart)} apart; {100 * share:.0f} % are in the "
        f"upper one. A mean describes neither.",
        why="The verdict is about the mean over both groups; its interval includes their distance.",
        spoils=True,
    )


def spread_ties(values: Floats) -> Floats:
    """Return the sorted values, equal ones spread evenly over the room to their neighbours."""
    ordered = np.sort(values)
    different, counts = np.unique(ordered, return_counts=True)
    if len(different) == len(ordered) or len(different) < 2:
        return ordered
    gaps = np.diff(different)
    room = np.minimum(np.r_[gaps[0], gaps], np.r_[gaps, gaps[-1]])
    place = np.arange(len(ordered)) - np.repeat(np.cumsum(counts) - counts, counts)
    return ordered + np.repeat(room, counts) * ((place + 0.5) / np.repeat(counts, counts) - 0.5)


def two_groups(values: Floats) -> tuple[float, float]:
    """Return the share of the upper of the two tightest groups (Otsu 1979) and the distance of their means."""
    ordered = np.sort(values)
    below = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)[:-1]
    apart = (ordered.sum() - sums) / (len(ordered) - below) - sums / below
    best = int(np.argmax(apart**2 * below * (len(ordered) - below)))
    return float((len(ordered) - below[best]) / len(ordered)), float(apart[best])


FEWEST_VALUES_OF_EACH: Final = 10
WIDER: Final = 1.2
"""Least factor by which outliers must widen the standard deviation to matter."""


def far_values(residuals: Residuals) -> DiagnosticFinding | None:
    """Return how many outliers there are, as in ``analysis.summary``; ``None`` with too few values of any."""
    groups = residuals.by_configuration
    if min(map(len, groups)) < FEWEST_VALUES_OF_EACH:
        return None
    far = residuals.far
    worst = max(range(len(groups)), key=lambda place: len(far[place]))
    count = sum(map(len, far))
    group, name = groups[worst], residuals.names[worst]
    without = np.delete(group, far[worst])
    wider = float(np.std(group) / np.std(without)) if len(without) > 1 and np.std(without) > 0 else 1.0
    noun, under, make = ("outlier", "", "it makes") if count == 1 else ("outliers", "most of them ", "they make")
    return DiagnosticFinding(
        kind="outliers",
        measures="values far from all others",
        value=float(count),
        certain=count > 0,
        naive_error=error_of_shape(group) if count else None,
        configuration=name if count else "",
        says=f"{number(count)} {noun} in {number(len(residuals))} values, {under}under {name}, where {make} the "
        f"standard deviation {number(wider)} times as large.",
        why="They stay in every figure and widen the intervals.",
        spoils=wider >= WIDER,
    )


ALARMS: Final = 0.05
"""The error rate of all alarms together on clean data (Holm 1979, Scandinavian Journal of Statistics 6)."""

FEWEST_TRIALS: Final = 10 * BATCH
"""Fewer give too few pieces of a run to tell how often anything happens."""
MOST_PLACES: Final = 300

_OF_SHAPE: Final = (far_values, spread)
_OF_TIME: Final = (drift, warm_up, order, carry_over, autocorrelation)


def diagnose(trials: Trials, metrics: Sequence[Metric], clock: Clock, smallest_effect: float = 0.0) -> Diagnostics:
    """Diagnose the noise of each of ``metrics``; two groups count if they differ by the ``smallest_effect``.

    Under the virtual clock every trial starts from the same snapshot, so nothing can depend on when it ran.
    """
    clean = clean_trials(trials)
    every = (compute_residuals(clean, metric) for metric in metrics)
    noisy = [residuals for residuals in every if residuals is not None and residuals.vary]
    tests: Sequence[Callable[[Residuals], DiagnosticFinding | None]] = (
        _OF_SHAPE if clock == "virtual" else _OF_TIME + _OF_SHAPE
    )
    findings = [
        (residuals.metric.name, finding)
        for residuals in noisy
        for finding in (
            *(test(residuals) for test in tests),
            bimodality(residuals, _margin(clean, residuals, smallest_effect)),
        )
        if finding is not None
    ]
    present = holm([finding.p_value for _, finding in findings], ALARMS)
    in_time = [] if clock == "virtual" else noisy
    return Diagnostics(
        level=ALARMS,
        found=tuple(
            _diagnostic(name, finding, there) for (name, finding), there in zip(findings, present, strict=True)
        ),
        naive=tuple(naive for naive in map(_naive, in_time) if naive is not None),
        courses=tuple(_course(residuals) for residuals in in_time if residuals.blocks > 1),
    )


def _margin(clean: Clean, residuals: Residuals, smallest_effect: float) -> float:
    # On the residuals' scale; of differences relative to the smallest mean.
    if residuals.scale == "ratio":
        return float(np.log1p(smallest_effect))
    means = (abs(float(np.mean(clean.values(name, residuals.metric.name)))) for name in residuals.names)
    return max(smallest_effect * min(means), residuals.metric.resolution)


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
    # Return the verdict of two batches of equals at any moment of this very run.
    if len(residuals) < FEWEST_TRIALS:
        return None
    error, windows = error_in(residuals.values)
    within = residuals.values - residuals.block_averages[residuals.block]
    freedom = len(residuals) - len(residuals.names) - residuals.blocks + 1
    variance = float(np.sum(within**2)) / freedom if freedom > 0 else 0.0
    narrowing = residuals.sd / variance**0.5 if variance > 0 else None
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


def _course(residuals: Residuals) -> Course:
    places = different(np.linspace(0, residuals.blocks - 1, min(residuals.blocks, MOST_PLACES)).astype(int))
    values = residuals.block_averages[places]
    return Course(
        metric=residuals.metric.name,
        scale=residuals.scale,
        blocks=tuple(int(number) for number in residuals.numbers[places]),
        values=tuple(float(value) for value in (np.exp(values) if residuals.scale == "ratio" else values)),
    )

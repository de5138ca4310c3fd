"""Diagnostics of a measurement's noise: what breaks the assumptions that simpler comparisons rest on."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import scipy

from ajuste_stats.heterogeneity import variance_between
from ajuste_stats.multiplicity import holm
from ajuste_stats.naive_errors import (
    BATCH,
    error_in,
    error_of_autocorrelation,
    error_of_bias,
    error_of_shape,
    error_of_trend,
    error_of_unequal_spread,
)
from ajuste_stats.outliers import median
from ajuste_stats.residuals import Floats, Residuals
from ajuste_stats.terms import Kind

HARM: Final = 0.06
"""Least error rate of a naive comparison at which a defect counts as harmful: a fifth more than promised."""

FEWEST_OF_SPREAD: Final = 8
"""Values of each treatment that show a spread."""

FEWEST_OF_GROUPS: Final = 20
"""Values of a treatment that show two groups."""

FEWEST_VALUES_OF_EACH: Final = 10

WIDER: Final = 1.2
"""Least factor by which outliers must widen the standard deviation to matter."""

FEWEST_BLOCKS: Final = 8
FEWEST_BLOCKS_FOR_DRIFT: Final = 10

# More blocks than this are averaged in groups: every pair of them is compared.
_MOST: Final = 400

FEWEST_IN_ORDER: Final = 30
"""Values that show whether neighbours resemble each other."""

_MOST_CORRELATION: Final = 0.98
_LONG: Final = 400  # trials from which on what they did themselves is known better than what a model says
_SURE: Final = 3.0  # standard errors from which on pairs count as resembling each other

FEWEST_AFTER: Final = 5
"""Values after each treatment that show what it does to the next."""

LENGTHS: Final = (1, 2, 4, 8)
FEWEST_BLOCKS_FOR_WARM_UP: Final = 12

ALARMS: Final = 0.05
"""The error rate of all alarms together on clean data."""

FEWEST_TRIALS: Final = 10 * BATCH
"""Fewer give too few pieces of a run to tell how often anything happens."""


@dataclass(frozen=True)
class Finding:
    """The result of one diagnostic of a ``kind``, before all are weighed together.

    ``value`` is its size: a share of the level where values are compared by ratios, a difference in their unit
    otherwise; of *outliers* their number, of *unequal variance* the ratio of standard deviations, of *autocorrelation*
    the correlation with the value before. Without a ``p_value`` ``certain`` says whether it is there. ``naive_error``
    is the error rate of ``naive_errors`` with it. ``treatment`` is the one concerned most, and ``other`` the one that
    it is compared with. ``verdict_affected``: comparisons within blocks suffer too. ``spoils``: worth knowing even if
    it misleads no test. ``figures`` are what else was computed, on the scale of the residuals.
    """

    kind: Kind
    value: float
    p_value: float | None = None
    certain: bool = False
    naive_error: float | None = None
    treatment: str = ""
    other: str = ""
    verdict_affected: bool = False
    spoils: bool = False
    figures: Mapping[str, float] = field(default_factory=dict)

    def matters(self, *, significant: bool) -> bool:
        """Return whether it misleads somebody, given whether all tests together find it ``significant``."""
        harmful = self.naive_error is not None and self.naive_error >= HARM
        return (significant or self.certain) and (harmful or self.spoils or self.verdict_affected)


def spread(residuals: Residuals) -> Finding | None:
    """Return how much the standard deviations differ; ``None`` with fewer than ``FEWEST_OF_SPREAD`` values of any.

    Brown and Forsythe's test (1974, JASA 69): analysis of variance of the distances from the median.
    """
    groups = residuals.by_treatment
    if len(groups) < 2 or min(map(len, groups)) < FEWEST_OF_SPREAD:
        return None
    distances = np.concatenate(residuals.from_median)
    p_value, _ = variance_between(distances, np.repeat(np.arange(len(groups)), [len(group) for group in groups]))
    deviations = [float(np.std(group, ddof=1)) for group in groups]
    widest, least = int(np.argmax(deviations)), int(np.argmin(deviations))
    ratio = deviations[widest] / deviations[least] if deviations[least] > 0 else float("inf")
    return Finding(
        kind="unequal variance",
        value=ratio,
        p_value=p_value,
        naive_error=error_of_unequal_spread(min(ratio, 1e6)),
        treatment=residuals.names[widest],
        other=residuals.names[least],
        spoils=ratio >= 2,
        figures={"times": ratio},
    )


def _dip_p_value(values: Floats) -> float | None:
    try:
        from diptest import diptest  # an optional dependency
    except ModuleNotFoundError:
        return None
    with warnings.catch_warnings():
        # Above 72,000 values the last row of the table holds: the dip times the root of their number has a limit.
        warnings.simplefilter("ignore", UserWarning)
        return float(diptest(values)[1])


def bimodality(residuals: Residuals, apart_by: float = 0.0, seed: int = 1) -> Finding | None:
    """Return the treatment whose values look most like two groups that are at least ``apart_by`` apart, on the
    residuals' scale; ``None`` with too few values of each, and without the package ``diptest``.

    Hartigan's dip test (Hartigan and Hartigan 1985, Annals of Statistics 13) on each, Bonferroni over them. Values that
    are alike because of the figure's steps are spread evenly over a step first, or every count would look like many
    groups.
    """
    dips = (
        (_dip_p_value(spread_ties(group)) if two_groups(group)[1] >= apart_by else 1.0, place)
        for place, group in enumerate(residuals.by_treatment)
        if len(group) >= FEWEST_OF_GROUPS and float(np.ptp(group)) > 0
    )
    tested = [(p_value, place) for p_value, place in dips if p_value is not None]
    if not tested:
        return None
    p_value, place = min(tested)
    group, name = residuals.by_treatment[place], residuals.names[place]
    share, apart = two_groups(group)
    return Finding(
        kind="bimodality",
        value=float(np.expm1(apart)) if residuals.scale == "ratio" else apart,
        p_value=min(1.0, p_value * len(tested)),
        naive_error=error_of_shape(group, np.random.default_rng(seed)),
        treatment=name,
        spoils=True,
        figures={"apart": apart, "upper share": share},
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


def far_values(residuals: Residuals, seed: int = 1) -> Finding | None:
    """Return how many outliers there are, as in ``outliers``; ``None`` with too few values of any."""
    groups = residuals.by_treatment
    if min(map(len, groups)) < FEWEST_VALUES_OF_EACH:
        return None
    far = residuals.far
    worst = max(range(len(groups)), key=lambda place: len(far[place]))
    count = sum(map(len, far))
    group, name = groups[worst], residuals.names[worst]
    without = np.delete(group, far[worst])
    wider = float(np.std(group) / np.std(without)) if len(without) > 1 and np.std(without) > 0 else 1.0
    return Finding(
        kind="outliers",
        value=float(count),
        certain=count > 0,
        naive_error=error_of_shape(group, np.random.default_rng(seed)) if count else None,
        treatment=name if count else "",
        spoils=wider >= WIDER,
        figures={"values": float(len(residuals)), "times as wide": wider},
    )


def order(residuals: Residuals) -> Finding | None:
    """Return the effect of the place in the block; ``None`` with too few blocks that have several.

    The slope over the places within each block is one value a block; a t test on these (blocks are independent of each
    other, the trials of a block need not be).
    """
    slopes = _slopes(residuals)
    if len(slopes) < FEWEST_BLOCKS:
        return None
    slope, spread = float(np.mean(slopes)), float(np.std(slopes, ddof=1))
    if spread == 0:
        return None
    p_value = 2 * scipy.special.stdtr(len(slopes) - 1, -abs(slope) / spread * math.sqrt(len(slopes)))
    last = slope * (float(np.max(residuals.position)) - float(np.min(residuals.position)))
    return Finding(
        kind="order",
        value=float(np.expm1(last)) if residuals.scale == "ratio" else last,
        p_value=p_value,
        naive_error=error_of_bias(last, residuals.sd),
        figures={"change": last},
    )


def _slopes(residuals: Residuals) -> Floats:
    # Return the least-squares slope over the places of each block with at least two trials.
    count = residuals.each_block
    centre = np.bincount(residuals.block, residuals.position, minlength=residuals.blocks) / count
    away = residuals.position - centre[residuals.block]
    squares = np.bincount(residuals.block, away**2, minlength=residuals.blocks)
    products = np.bincount(residuals.block, away * residuals.values, minlength=residuals.blocks)
    return np.asarray(products[squares > 0] / squares[squares > 0])


def drift(residuals: Residuals) -> Finding | None:
    """Return whether the level moves in one direction over the run; ``None`` with too few blocks to tell.

    The Mann-Kendall test (Mann 1945, Econometrica 13; Kendall 1975) on the means of the blocks, and the Theil-Sen slope
    (Sen 1968, JASA 63), which single disturbed blocks hardly move.
    """
    if residuals.blocks < FEWEST_BLOCKS_FOR_DRIFT:
        return None
    size = math.ceil(residuals.blocks / _MOST)
    averages = residuals.block_averages[: residuals.blocks // size * size].reshape(-1, size).mean(axis=1)
    p_value, slope = trend_test(averages, np.arange(len(averages), dtype=np.float64) * size)
    total = slope * (residuals.blocks - 1)
    residual = residuals.values - slope * residuals.block
    by_trial = slope / float(np.mean(residuals.each_block))
    return Finding(
        kind="drift",
        value=float(np.expm1(total)) if residuals.scale == "ratio" else total,
        p_value=p_value,
        naive_error=error_of_trend(by_trial, float(np.std(residual))),
        figures={"change": total},
    )


def trend_test(values: Floats, places: Floats) -> tuple[float, float]:
    """Return the two-sided p-value of the Mann-Kendall test (normal, with ties and continuity) and the slope."""
    first, second = np.triu_indices(len(values), 1)
    rises = values[second] - values[first]
    n = len(values)
    _, ties = np.unique(values, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float(np.sum(ties * (ties - 1) * (2 * ties + 5)))) / 18
    if variance <= 0:
        return 1.0, 0.0
    score = max(0.0, abs(float(np.sum(np.sign(rises)))) - 1) / math.sqrt(variance)
    return 2 * scipy.special.ndtr(-score), median(rises / (places[second] - places[first]))


def autocorrelation(residuals: Residuals) -> Finding | None:
    """Return the resemblance of neighbours in the order of running; ``None`` with too few trials to tell.

    Their correlation after a straight line over the run is taken out; its standard error is 1/√N and its bias −1/N if
    there is none (Bartlett 1946; Box and Jenkins, Time Series Analysis, 2.1). N trials of a first-order autoregression
    tell as much of a mean as N (1 − ρ)/(1 + ρ) independent ones.
    """
    n = len(residuals)
    if n < FEWEST_IN_ORDER or residuals.blocks < 3:
        return None
    places = np.arange(n, dtype=np.float64) - (n - 1) / 2
    slope = float(np.sum(places * residuals.values)) / float(np.sum(places**2))
    detrended = residuals.values - residuals.values.mean() - slope * places
    rho = lag_1_correlation(detrended)
    if rho is None:
        return None
    paired, paired_score = _paired_autocorrelation(residuals)
    affected = rho > 0 and paired_score > _SURE and paired > 0.1
    bounded = max(-_MOST_CORRELATION, min(_MOST_CORRELATION, rho))
    effective = n * (1 - bounded) / (1 + bounded)
    return Finding(
        kind="autocorrelation",
        value=rho,
        p_value=2 * scipy.special.ndtr(-abs(rho + 1 / n) * math.sqrt(n)),
        naive_error=error_in(detrended)[0] if n >= _LONG else error_of_autocorrelation(bounded),
        verdict_affected=affected,
        figures={"values": float(n), "independent": effective, "of pairs": paired},
    )


def lag_1_correlation(values: Floats) -> float | None:
    """Return the correlation of each value with the one before; ``None`` where nothing varies."""
    away = values - values.mean()
    whole = float(np.sum(away**2))
    return float(np.sum(away[1:] * away[:-1])) / whole if whole > 0 else None


def _paired_autocorrelation(residuals: Residuals) -> tuple[float, float]:
    # Return the same within blocks, of all treatments together, and its distance from none in standard errors.
    within = residuals.values - residuals.block_averages[residuals.block]
    order = np.argsort(residuals.treatment, kind="stable")
    codes, values = residuals.treatment[order], within[order]
    next_to = codes[1:] == codes[:-1]
    whole = float(np.sum(values**2))
    if whole <= 1e-18 or len(residuals.names) < 2:
        return 0.0, 0.0
    rho = float(np.sum(values[1:][next_to] * values[:-1][next_to])) / whole
    independent = residuals.blocks * (len(residuals.names) - 1)
    return rho, (rho + 1 / residuals.blocks) * math.sqrt(independent)


def carry_over(residuals: Residuals) -> Finding | None:
    """Return the effect of what ran before; ``None`` with fewer than ``FEWEST_AFTER`` trials after any treatment.

    One-way analysis of variance (Fisher) of the residuals by the treatment of the trial before. With two
    treatments only the first trials of blocks: there the one before is either of them.
    """
    values, before = residuals.values[1:], residuals.treatment[:-1]
    if len(residuals.names) == 2:
        first = np.flatnonzero(np.diff(residuals.block) > 0)
        values, before = values[first], before[first]
    counts = np.bincount(before, minlength=len(residuals.names))
    if len(residuals.names) < 2 or int(np.min(counts)) < FEWEST_AFTER:
        return None
    p_value, effects = variance_between(values, before)
    strongest = int(np.argmax(np.abs(effects)))
    effect, name = float(effects[strongest]), residuals.names[strongest]
    # The effect is against the mean of all, the bias comes from that against all others.
    others = 1 - float(counts[strongest]) / float(np.sum(counts))
    # By what share of their trials the others follow it more often than it follows itself.
    after, itself = residuals.treatment[:-1] == strongest, residuals.treatment[1:] == strongest
    more_often = float(np.mean(after[~itself])) - float(np.mean(after[itself]))
    bias = effect / others * more_often
    affected = abs(bias) > residuals.sd * math.sqrt(2 / residuals.blocks)
    return Finding(
        kind="carry-over",
        value=float(np.expm1(effect)) if residuals.scale == "ratio" else effect,
        p_value=p_value,
        naive_error=error_of_bias(effect / BATCH, residuals.sd),
        treatment=name,
        verdict_affected=affected,
        figures={"effect": effect, "bias": bias},
    )


def warm_up(residuals: Residuals) -> Finding | None:
    """Return how far the first blocks are off from what the later ones predict; ``None`` with too few blocks.

    For the first 1, 2, 4 and 8 blocks: their mean against the straight line through all later block means, with the t
    test of a prediction from a regression (Draper and Smith 1998, Applied Regression Analysis, 3.1); Bonferroni over
    lengths. A drift that goes on for the whole run is part of the line; and where later blocks are as far from it, it
    is the line that does not fit, and not the start.
    """
    if residuals.blocks < FEWEST_BLOCKS_FOR_WARM_UP:
        return None
    averages = residuals.block_averages
    lengths = [length for length in LENGTHS if length <= residuals.blocks // 4]
    tested = [(*_first_against_rest(averages, length), length) for length in lengths]
    p_value, off, length = min(tested)
    trials = length * float(np.mean(residuals.each_block))
    return Finding(
        kind="warm-up",
        value=float(np.expm1(off)) if residuals.scale == "ratio" else off,
        p_value=min(1.0, p_value * len(lengths)),
        naive_error=error_of_bias(off * min(1.0, trials / BATCH), residuals.sd),
        figures={"off": off, "blocks": float(length)},
    )


def _first_against_rest(averages: Floats, length: int) -> tuple[float, float]:
    places = np.arange(len(averages), dtype=np.float64)
    x, y = places[length:], averages[length:]
    spread = float(np.sum((x - x.mean()) ** 2))
    slope = float(np.sum((x - x.mean()) * y)) / spread
    residual = y - y.mean() - slope * (x - x.mean())
    variance = float(np.sum(residual**2)) / (len(y) - 2)
    away = float(places[:length].mean()) - float(x.mean())
    off = float(averages[:length].mean()) - float(y.mean()) - slope * away
    later = np.convolve(residual, np.ones(length) / length, "valid")
    if float(np.max(np.abs(later))) >= abs(off):
        return 1.0, off
    error = math.sqrt(variance * (1 / length + 1 / len(y) + away**2 / spread))
    if error == 0:
        return (0.0 if off else 1.0), off
    return 2 * scipy.special.stdtr(len(y) - 2, -abs(off) / error), off


_OF_TIME: Final = (drift, warm_up, order, carry_over, autocorrelation)


def findings(residuals: Residuals, *, apart_by: float = 0.0, in_time: bool = True, seed: int = 1) -> Iterator[Finding]:
    """Yield what each diagnostic finds in ``residuals``; two groups count if they are ``apart_by`` apart.

    Without ``in_time`` nothing can depend on when it ran, as where every trial starts from the same snapshot. What is
    drawn at random follows from ``seed``.
    """
    tests: Sequence[Callable[[Residuals], Finding | None]] = _OF_TIME if in_time else ()
    in_order = [test(residuals) for test in tests]
    every = (*in_order, far_values(residuals, seed), spread(residuals), bimodality(residuals, apart_by, seed))
    return (finding for finding in every if finding is not None)


def significant(every: Sequence[Finding], level: float = ALARMS) -> list[bool]:
    """Return which of the findings, of one quantity or several, are there at an error rate of ``level`` together."""
    return holm([finding.p_value for finding in every], level)


@dataclass(frozen=True)
class Naive:
    """Result of t tests of two equal batches at all moments of this very run.

    ``error`` is the share of false differences, over so many ``windows``. ``narrowing`` is the factor by which a
    difference varies less within blocks; ``None`` if unknown.
    """

    error: float
    windows: int
    narrowing: float | None


def naive(residuals: Residuals) -> Naive | None:
    """Return how a naive comparison would have fared in this run; ``None`` below ``FEWEST_TRIALS`` values."""
    if len(residuals) < FEWEST_TRIALS:
        return None
    error, windows = error_in(residuals.values)
    within = residuals.values - residuals.block_averages[residuals.block]
    freedom = len(residuals) - len(residuals.names) - residuals.blocks + 1
    variance = float(np.sum(within**2)) / freedom if freedom > 0 else 0.0
    return Naive(error, windows, residuals.sd / variance**0.5 if variance > 0 else None)

"""The surfaces of a study: each deciding metric, and the switches that explain it, over its numeric factors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, ndtri, polygamma

from ajuste.analysis.pairs import Clean, Trials, clean_trials
from ajuste.analysis.surface.axes import surface_axes
from ajuste.model.metric import Metric
from ajuste.model.results import Measured
from ajuste.model.surface import Correlation, Curve, Region, Surface, SurfaceAxis, SurfacePoint
from ajuste.model.trial import Configuration, Factor
from ajuste.model.verdict import Verdict
from ajuste.study.resolved import ResolvedStudy
from ajuste_stats.confidence_sequences import mixture_half_width
from ajuste_stats.ranks import ranks
from ajuste_stats.regions import FEWEST_POINTS, GridLine, Stretch, regions
from ajuste_stats.rounding import figure_step, row_errors
from ajuste_stats.terms import Direction, Scale

# The blocks of one metric as a table, and its residuals without what all blocks have in common.


Array = NDArray[np.float64]

_ROUNDS: Final = 60
# Times the smallest mean: a larger span is compared by ratios where possible, even if the verdicts are not.
_WIDE: Final = 10.0


@dataclass(frozen=True)
class Blocks:
    """A table with a row for each of ``names`` and a column for each block, NaN where there is no figure.

    ``values`` are logarithms where ``scale`` is *ratio*. ``rounding`` is the variance of each row's values from their
    resolution alone, ``errors`` how far it may have moved each row's mean. ``order`` says when in its block a trial
    ran; ``None`` where that cannot matter.
    """

    names: tuple[str, ...]
    values: Array
    scale: Scale
    rounding: Array
    order: Array | None = None
    errors: Array | None = None

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Return how many figures each row has."""
        return np.asarray(np.count_nonzero(np.isfinite(self.values), axis=1), dtype=np.int64)

    @cached_property
    def levels(self) -> Array:
        """Return the mean of each row as if all rows were measured in all blocks, by least squares."""
        return self._fitted[0]

    @cached_property
    def deviations(self) -> Array:
        """Return each figure without its row's level and its block's effect."""
        levels, effects = self._fitted
        return np.asarray(self.values - levels[:, None] - effects[None, :])

    @cached_property
    def variances(self) -> Array:
        """Return the unbiased variance of each row within blocks, at least that of rounding; NaN below two figures.

        Deviations from the means of blocks of k figures are too small by (k − 1)/k (Morey 2008, "Confidence intervals
        from normalized data", Tutorials in Quantitative Methods for Psychology 4).
        """
        each = float(np.mean(np.sum(np.isfinite(self.values), axis=0)))
        shrunk = each / (each - 1) if each > 1 else 1.0
        squares = np.nansum(self.deviations**2, axis=1) * shrunk
        with np.errstate(invalid="ignore", divide="ignore"):
            unbiased = squares / (self.counts - 1)
        return np.where(self.counts > 1, np.maximum(unbiased, self.rounding), np.nan)

    @cached_property
    def _fitted(self) -> tuple[Array, Array]:
        have = np.isfinite(self.values)
        filled = np.where(have, self.values, 0.0)
        rows, columns = np.maximum(1, have.sum(axis=1)), np.maximum(1, have.sum(axis=0))
        effects = np.zeros(self.values.shape[1])
        for _ in range(_ROUNDS):
            levels = (filled - have * effects[None, :]).sum(axis=1) / rows
            shifted = (filled - have * levels[:, None]).sum(axis=0) / columns
            shifted -= shifted.mean()
            settled = bool(np.all(np.abs(shifted - effects) <= 1e-12 * (1 + np.abs(shifted))))
            effects = shifted
            if settled:
                break
        return np.asarray((filled - have * effects[None, :]).sum(axis=1) / rows), effects


def tabulate_blocks(clean: Clean, names: Sequence[str], metric: Metric, *, order_matters: bool) -> Blocks | None:
    """Return the clean figures of ``metric`` of those of ``names`` that have any; ``None`` with fewer than two."""
    column = clean.measured.metrics.get(metric.column)
    if column is None:
        return None
    places = np.stack([clean.places(name) for name in names])
    values = np.where(places >= 0, column[places], np.nan)
    measured = np.any(np.isfinite(values), axis=1)
    if np.count_nonzero(measured) < 2:
        return None
    places, values = places[measured], values[measured]
    used = np.any(np.isfinite(values), axis=0)
    places, values = places[:, used], values[:, used]
    averages = np.abs(np.nanmean(values, axis=1))
    rounding = np.full(len(values), figure_step(metric, values[np.isfinite(values)]) ** 2 / 12)
    positive = bool(np.all(values[np.isfinite(values)] > 0))
    as_ratio = positive and (metric.scale == "ratio" or float(np.max(averages)) > _WIDE * float(np.min(averages)))
    order = None
    if order_matters:  # What is repeated runs after all that is not.
        trials = clean.measured
        when = trials.attempt[places] * (int(np.max(trials.position, initial=0)) + 1) + trials.position[places]
        order = np.asarray(when, dtype=np.float64)
    return Blocks(
        names=tuple(name for name, is_measured in zip(names, measured, strict=True) if is_measured),
        values=np.log(values) if as_ratio else values,
        scale="ratio" if as_ratio else "difference",
        rounding=rounding / averages**2 if as_ratio else rounding,
        order=order,
        errors=row_errors(metric, values, as_ratio=as_ratio),
    )


MOST_FREEDOM: Final = 1e6
FEWEST_BLOCKS: Final = 3
"""Fewer give no interval: a row of another variance would not be distinguishable."""
_LEAST: Final = 1e-300
_TINY_FREEDOM: Final = 1e-9
# Figures of a row from which on its own variance is to be trusted, also if they have two modes.
_ENOUGH: Final = 10


def believed(blocks: Blocks) -> tuple[Array, Array]:
    """Return the moderated variance of each row, or its own if larger, and its degrees of freedom.

    A row that is noisier than most must not count as quiet.
    """
    common, freedom = moderated(blocks.variances, (blocks.counts - 1).astype(np.float64))
    return np.maximum(np.nan_to_num(blocks.variances), common), np.maximum(freedom, _TINY_FREEDOM)


def at_least_pooled(variances: Array, blocks: Blocks) -> Array:
    """Return ``variances`` of rows; of rows with few figures none below that within all rows together.

    A few figures that have two modes can all be of the same one, and then hardly vary: such a row is no quieter than
    the others.
    """
    freedom = np.maximum(0, blocks.counts - 1)
    known = np.isfinite(blocks.variances) & (freedom > 0)
    if not np.any(known):
        return variances
    pooled = float(np.average(blocks.variances[known], weights=freedom[known]))
    return np.where(blocks.counts < _ENOUGH, np.maximum(variances, pooled), variances)


def moderated(variances: Array, freedom: Array) -> tuple[Array, Array]:
    """Return the moderated ``variances`` and their degrees of freedom; both as long as what is given.

    The empirical Bayes estimate of Smyth (2004, "Linear models and empirical Bayes methods for assessing differential
    expression in microarray experiments", Statistical Applications in Genetics and Molecular Biology 3): where the
    sample variances differ no more than by chance, nearly their common value; where they differ more, nearly each its
    own. Entries without freedom (NaN, 0) get the common variance, with the prior's own freedom.
    """
    known = np.isfinite(variances) & (freedom > 0)
    if not np.any(known):
        return variances, np.zeros(len(variances))
    observed, degrees = np.maximum(variances[known], _LEAST), freedom[known]
    prior, prior_freedom = _prior(observed, degrees)
    held = np.where(known, freedom, 0.0)
    squares = np.where(known, variances, 0.0) * held
    total = held + prior_freedom
    # No prior knows more than all the variances it was made from.
    return (squares + prior * prior_freedom) / total, np.minimum(total, float(np.sum(degrees)))


def _prior(variances: Array, freedom: Array) -> tuple[float, float]:
    # Return the common variance, and how many degrees of freedom it is worth.
    logs = np.log(variances) - digamma(freedom / 2) + np.log(freedom / 2)
    middle = float(np.mean(logs))
    if len(logs) < 2:
        return float(np.exp(middle)), _TINY_FREEDOM
    excess = float(np.var(logs, ddof=1) - np.mean(polygamma(1, freedom / 2)))
    if excess <= 0:
        return float(np.average(variances, weights=freedom)), MOST_FREEDOM
    degrees = min(MOST_FREEDOM, 2 * _trigamma_inverse(excess))
    return float(np.exp(middle + digamma(degrees / 2) - math.log(degrees / 2))), degrees


def _trigamma_inverse(value: float) -> float:
    # Newton's method on 1/trigamma, which is convex (Smyth 2004, appendix).
    if value > 1e7:
        return float(1 / np.sqrt(value))
    if value < 1e-6:
        return 1 / value
    root = 0.5 + 1 / value
    for _ in range(50):
        at = polygamma(1, root)
        step = at * (1 - at / value) / polygamma(2, root)
        root += step
        if -step / root < 1e-9:
            break
    return root


FEWEST: Final = 6
"""Minimum number of configurations: of fewer a rank correlation tells nothing."""


def correlations(
    configurations: Sequence[Measured], deciding: Sequence[Metric], metrics: Sequence[Metric], confidence: float
) -> tuple[Correlation, ...]:
    """Return each of ``deciding`` with every other of ``metrics`` that varies, the strongest first."""
    strongest: list[Correlation] = []
    for metric in deciding:
        usable = []
        for other in metrics:
            if other == metric:
                continue
            both = [c.metrics for c in configurations if metric.name in c.metrics and other.name in c.metrics]
            first, second = (np.array([m[name].mean for m in both]) for name in (metric.name, other.name))
            if _varies(first) and _varies(second):
                usable.append((other.name, first, second))
        alpha = (1 - confidence) / max(1, len(usable))
        rows = []
        for name, first, second in usable:
            rho, n = rank_correlation(first, second), len(first)
            low, high = interval(rho, n, alpha)
            rows.append(Correlation(metric=metric.name, other=name, rho=rho, low=low, high=high, n=n, level=confidence))
        strongest += sorted(rows, key=lambda row: -abs(row.rho))
    return tuple(strongest)


def rank_correlation(first: Array, second: Array) -> float:
    """Return Spearman's ρ; equal values share their mean rank."""
    return float(np.corrcoef(ranks(first), ranks(second))[0, 1])


def interval(rho: float, n: int, alpha: float) -> tuple[float, float]:
    """Return the interval of error rate ``alpha``; ``n`` above 3.

    That of Bonett and Wright (2000, "Sample size requirements for estimating Pearson, Kendall and Spearman
    correlations", Psychometrika 65): Fisher's z with the standard error √((1 + ρ²/2)/(n − 3)). A perfect correlation
    counts as half a swap of neighbours less.
    """
    most = 1 - 6 / (n * (n * n - 1))
    held = min(max(rho, -most), most)
    half = ndtri(1 - alpha / 2) * math.sqrt((1 + held**2 / 2) / (n - 3))
    return min(rho, math.tanh(math.atanh(held) - half)), max(rho, math.tanh(math.atanh(held) + half))


def _varies(values: Array) -> bool:
    return len(values) >= FEWEST and bool(np.ptp(values) > 0)


_TINY: Final = 1e-300
MOST_RIVALS: Final = 64
"""The best ones that are compared with all others: what beats a configuration is among them, or it stays."""


@dataclass(frozen=True)
class BestSet:
    """``best`` is the place of the row with the best level, ``members`` those of all that may be the best."""

    best: int
    members: tuple[int, ...]


def best_set(blocks: Blocks, direction: Direction, alpha: float) -> BestSet:
    """Return the rows of ``blocks`` that may be the best; ``alpha`` is the error rate of the whole set.

    Multiple comparisons with the best (Hsu 1984, "Constrained simultaneous confidence intervals for multiple
    comparisons with the best", Annals of Statistics 12), with anytime-valid intervals of differences within blocks in
    place of Dunnett's: a configuration is left out once another one is better beyond doubt. The truly best one is left
    out only if one of its k − 1 intervals against the others is wrong, so each of these has the k-1st part of the error
    rate.
    """
    toward = -1.0 if direction == "higher" else 1.0
    ranked = np.argsort(toward * blocks.levels, kind="stable")
    rivals = ranked[:MOST_RIVALS]
    apart, n = _apart(blocks, rivals)
    half = _half_widths_apart(blocks, rivals, n, alpha / max(1, len(ranked) - 1))
    beaten = toward * apart > half
    if blocks.order is not None:
        beaten &= ~_same_order(blocks, blocks.order, rivals)
    out = np.any(beaten, axis=1)
    out[ranked[0]] = False
    return BestSet(int(ranked[0]), tuple(int(place) for place in ranked if not out[place]))


def _apart(blocks: Blocks, rivals: NDArray[np.intp]) -> tuple[Array, Array]:
    # Return the mean difference of each row (down) from each of `rivals` (across), and its number of blocks.
    have = np.isfinite(blocks.values).astype(np.float64)
    deviations = np.where(have > 0, blocks.deviations, 0.0)
    n = have @ have[rivals].T
    differences = (deviations @ have[rivals].T - have @ deviations[rivals].T) / np.maximum(n, 1)
    return blocks.levels[:, None] - blocks.levels[rivals][None, :] + differences, n


def _half_widths_apart(blocks: Blocks, rivals: NDArray[np.intp], n: Array, alpha: float) -> Array:
    row_variances, freedom = believed(blocks)
    variances = row_variances[:, None] + row_variances[rivals][None, :]
    parts = row_variances**2 / freedom
    degrees = variances**2 / np.maximum(parts[:, None] + parts[rivals][None, :], _TINY)
    half = mixture_half_width(n, variances, np.maximum(degrees, _TINY), alpha)
    if blocks.errors is not None:
        half = half + blocks.errors[:, None] + blocks.errors[rivals][None, :]
    return np.where(n >= FEWEST_BLOCKS, half, np.inf)


def _same_order(blocks: Blocks, order: Array, rivals: NDArray[np.intp]) -> NDArray[np.bool_]:
    # Return where the same of the two ran first in every block, so that a drift would look like an effect.
    have = np.isfinite(blocks.values)
    same = np.zeros((len(have), len(rivals)), dtype=np.bool_)
    for column, rival in enumerate(rivals):
        missing = ~(have & have[rival])
        first = order < order[rival]
        same[:, column] = np.all(first | missing, axis=1) | np.all(~first | missing, axis=1)
    return same


EXPLAINING: Final = ("voluntary-switches", "involuntary-switches")
"""Metrics that are shown beside a deciding one, because they say why."""
MOST_SLICES: Final = 4
"""Combinations of the other factors' levels that have their own surfaces."""

_SMALLEST_ERROR: Final = 1e-9


@dataclass(frozen=True)
class Promise:
    """``confidence`` that all surfaces together hold with; what is smaller than ``smallest_effect`` does not matter."""

    confidence: float
    smallest_effect: float
    order_matters: bool = True


@dataclass(frozen=True)
class _Slice:
    # The configurations in which the factors besides `axes` have the levels `fixed`.
    axes: tuple[SurfaceAxis, ...]
    fixed: dict[str, str]
    configurations: tuple[Configuration, ...]


def surfaces(
    factors: Sequence[Factor],
    configurations: Sequence[Configuration],
    clean: Clean,
    deciding: Sequence[Metric],
    described: Sequence[Metric],
    verdicts: Sequence[Verdict],
    promise: Promise,
) -> tuple[Surface, ...]:
    """Return a surface of each mean for each combination of the levels of factors that are no axis."""
    axes = surface_axes(factors)
    slices = list(_slices(axes, configurations)) if axes else []
    if not 0 < len(slices) <= MOST_SLICES:
        return ()
    shares = max(1, len(deciding)) * len(slices)
    drawn = []
    for metric in (*deciding, *(m for m in described if m.name in EXPLAINING)):
        judged = [v for v in verdicts if v.metric == metric.name] if metric in deciding else None
        made = (_surface(part, clean, metric, judged, promise, (1 - promise.confidence) / shares) for part in slices)
        drawn += [surface for surface in made if surface is not None]
    return tuple(drawn)


def _slices(axes: Sequence[SurfaceAxis], configurations: Sequence[Configuration]) -> Iterator[_Slice]:
    # Yield that of the baseline first; those with too few configurations for a curve are left out.
    along = {axis.factor for axis in axes}
    groups: dict[tuple[tuple[str, str], ...], list[Configuration]] = {}
    for configuration in sorted(configurations, key=lambda c: not c.baseline):
        key = tuple((name, level) for name, level in configuration.levels.items() if name not in along)
        groups.setdefault(key, []).append(configuration)
    varied = {name for key in groups for name, level in key if any((name, level) not in other for other in groups)}
    for key, group in groups.items():
        if len(group) >= FEWEST_POINTS:
            yield _Slice(tuple(axes), {name: level for name, level in key if name in varied}, tuple(group))


def _surface(
    part: _Slice, clean: Clean, metric: Metric, verdicts: Sequence[Verdict] | None, promise: Promise, alpha: float
) -> Surface | None:
    blocks = tabulate_blocks(clean, [c.name for c in part.configurations], metric, order_matters=promise.order_matters)
    if blocks is None:
        return None
    by_name = {c.name: c for c in part.configurations}
    measured = [by_name[name] for name in blocks.names]
    place = next((place for place, c in enumerate(measured) if c.baseline), 0)
    reference = float(np.mean(clean.values(measured[place].name, metric.column)))
    best = best_set(blocks, metric.direction, alpha) if verdicts is not None and metric.direction != "none" else None
    flat, within = _flat(verdicts or (), set(blocks.names), reference)
    return Surface(
        metric=metric.name,
        scale=blocks.scale,
        deciding=verdicts is not None,
        axes=part.axes,
        fixed=part.fixed,
        points=measured_points(blocks, place, reference, alpha),
        curves=tuple(_curves(part.axes, measured, blocks, surface_margin(blocks, reference, promise), promise)),
        best=blocks.names[best.best] if best else None,
        best_set=tuple(blocks.names[member] for member in best.members) if best else (),
        flat=flat,
        within=within,
        level=promise.confidence,
        blocks=blocks.values.shape[1],
    )


def surface_margin(blocks: Blocks, reference: float, promise: Promise) -> float:
    """Return the smallest effect that matters, on the scale of ``blocks``."""
    share = promise.smallest_effect
    return math.log1p(share) if blocks.scale == "ratio" else share * abs(reference)


def measured_points(blocks: Blocks, place: int, reference: float, alpha: float) -> tuple[SurfacePoint, ...]:
    """Return values relative to the figure at ``place`` with the mean ``reference``, as in the verdicts."""
    levels = blocks.levels + (math.log(reference) - blocks.levels[place] if blocks.scale == "ratio" else 0.0)
    natural = np.exp if blocks.scale == "ratio" else np.asarray
    variances, freedom = believed(blocks)
    half_widths = mixture_half_width(blocks.counts.astype(np.float64), variances, freedom, alpha / len(levels))
    if blocks.errors is not None:
        half_widths = half_widths + blocks.errors
    halves = np.where(blocks.counts >= FEWEST_BLOCKS, half_widths, np.inf)
    bounds = zip(natural(levels - halves), natural(levels + halves), strict=True)
    return tuple(
        SurfacePoint(
            configuration=name,
            value=float(value),
            low=float(low) if math.isfinite(half) else None,
            high=float(high) if math.isfinite(half) else None,
        )
        for name, value, half, (low, high) in zip(blocks.names, natural(levels), halves, bounds, strict=True)
    )


def _flat(verdicts: Sequence[Verdict], names: set[str], reference: float) -> tuple[bool, float | None]:
    # Return whether all are equivalent to the baseline, and how far from it they can be.
    relevant = [v for v in verdicts if v.configuration in names]
    if not relevant or any(v.verdict != "equivalent" for v in relevant):
        return False, None
    bounds = [(v.low, v.high, v.scale) for v in relevant]
    far = [
        max(1 - low, high - 1) if scale == "ratio" else max(-low, high) / abs(reference or math.nan)
        for low, high, scale in bounds
        if low is not None and high is not None
    ]
    within = max(far, default=math.nan)
    return True, within if math.isfinite(within) else None


def _curves(
    axes: Sequence[SurfaceAxis], measured: Sequence[Configuration], blocks: Blocks, margin: float, promise: Promise
) -> Iterator[Curve]:
    variances, freedom = moderated(blocks.variances, (blocks.counts - 1).astype(np.float64))
    errors = np.sqrt(at_least_pooled(variances, blocks) / np.maximum(1, blocks.counts))
    errors = np.maximum(errors, _SMALLEST_ERROR * max(float(np.ptp(blocks.levels)), _SMALLEST_ERROR))
    lines = [(axis, fixed, places) for axis in axes for fixed, places in _lines(axis, axes, measured)]
    for axis, fixed, places in lines:
        value_at = dict(zip(axis.levels, axis.values, strict=True))
        values = np.array([value_at[measured[place].levels[axis.factor]] for place in places])
        # Degrees of freedom along a line: those of its points alone, and what each has from all others.
        alone = (blocks.counts[places] - 1).astype(np.float64)
        line = GridLine(
            x=np.log(values) if axis.scale == "log" else values,
            y=blocks.levels[places],
            error=errors[places],
            freedom=float(np.sum(alone) + np.min(freedom[places] - alone)),
        )
        stretches = regions(line, alpha=(1 - promise.confidence) / len(lines), margin=margin)
        levels = [measured[place].levels[axis.factor] for place in places]
        yield Curve(
            along=axis.factor,
            fixed=fixed,
            regions=tuple(_region(stretch, levels, line.y, blocks) for stretch in stretches),
        )


def _lines(
    axis: SurfaceAxis, axes: Sequence[SurfaceAxis], measured: Sequence[Configuration]
) -> Iterator[tuple[dict[str, str], list[int]]]:
    order = {level: place for place, level in enumerate(axis.levels)}
    other = next((candidate for candidate in axes if candidate.factor != axis.factor), None)
    for level in other.levels if other else ("",):
        on = [place for place, c in enumerate(measured) if other is None or c.levels[other.factor] == level]
        on.sort(key=lambda place: order[measured[place].levels[axis.factor]])
        if len(on) >= FEWEST_POINTS:
            yield ({other.factor: level} if other else {}), on


def _region(stretch: Stretch, levels: Sequence[str], y: Array, blocks: Blocks) -> Region:
    within = y[stretch.start : stretch.end + 1]
    change, span = float(within[-1] - within[0]), float(np.ptp(within))
    as_ratio = blocks.scale == "ratio"
    return Region(
        shape=stretch.shape,
        first=levels[stretch.start],
        last=levels[stretch.end],
        change=math.exp(change) if as_ratio else change,
        span=math.exp(span) if as_ratio else span,
    )


def contenders(resolved: ResolvedStudy, trials: Trials) -> tuple[str, ...]:
    """Return the configurations that may have the best mean of the first deciding metric; all while unknown."""
    metric, analysis = resolved.deciding[0], resolved.study.analysis
    order_matters = resolved.study.target.clock == "wall"
    blocks = tabulate_blocks(clean_trials(trials), resolved.names, metric, order_matters=order_matters)
    if blocks is None:
        return resolved.names
    best = best_set(blocks, metric.direction, (1 - analysis.confidence) / len(resolved.deciding))
    return tuple(blocks.names[place] for place in best.members)

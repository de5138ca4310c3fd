"""The surfaces of a study: each deciding metric, and the switches that explain it, over its numeric factors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.pairs import Clean, Trials, clean_trials
from ajuste.analysis.surface.axes import surface_axes
from ajuste.model.metric import Metric
from ajuste.model.results import Measured
from ajuste.model.surface import Correlation, Curve, Region, Surface, SurfaceAxis, SurfacePoint
from ajuste.model.trial import Configuration, Factor
from ajuste.model.verdict import Verdict
from ajuste.study.resolved import ResolvedStudy
from ajuste_stats.best_sets import best_set
from ajuste_stats.block_tables import Blocks, at_least_pooled, level_half_widths, moderated, tabulate
from ajuste_stats.ranks import correlation_interval, rank_correlation
from ajuste_stats.regions import FEWEST_POINTS, GridLine, Stretch, regions

Array = NDArray[np.float64]


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
    order = None
    if order_matters:  # What is repeated runs after all that is not.
        trials = clean.measured
        when = trials.attempt[places] * (int(np.max(trials.position, initial=0)) + 1) + trials.position[places]
        order = np.asarray(when, dtype=np.float64)
    rows = tuple(name for name, is_measured in zip(names, measured, strict=True) if is_measured)
    return tabulate(rows, values, metric, order)


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
            low, high = correlation_interval(rho, n, alpha)
            rows.append(Correlation(metric=metric.name, other=name, rho=rho, low=low, high=high, n=n, level=confidence))
        strongest += sorted(rows, key=lambda row: -abs(row.rho))
    return tuple(strongest)


def _varies(values: Array) -> bool:
    return len(values) >= FEWEST and bool(np.ptp(values) > 0)


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
    halves = level_half_widths(blocks, alpha)
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

"""The surfaces of a study: each deciding metric, and the switches that explain it, over its numeric factors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.block_values import Promise, measured_points, surface_margin, tabulate_blocks
from ajuste.analysis.pairs import Clean
from ajuste.model.metric import Metric
from ajuste.model.surface import Curve, Region, Surface, SurfaceAxis
from ajuste.model.trial import Configuration, Factor
from ajuste.model.verdict import Verdict
from ajuste_search.surface.axes import surface_axes
from ajuste_stats.best_sets import best_set
from ajuste_stats.block_tables import Blocks, at_least_pooled, moderated
from ajuste_stats.regions import FEWEST_POINTS, GridLine, Stretch, regions

Array = NDArray[np.float64]

EXPLAINING: Final = ("voluntary-switches", "involuntary-switches")
"""Metrics that are shown beside a deciding one, because they say why."""
MOST_SLICES: Final = 4
"""Combinations of the other factors' levels that have their own surfaces."""

_SMALLEST_ERROR: Final = 1e-9


@dataclass(frozen=True)
class SurfaceSlice:
    """The configurations in which the factors besides ``axes`` have the levels ``fixed``."""

    axes: tuple[SurfaceAxis, ...]
    fixed: dict[str, str]
    configurations: tuple[Configuration, ...]


def surface_slices(factors: Sequence[Factor], configurations: Sequence[Configuration]) -> Sequence[SurfaceSlice]:
    """Return the parts of a design that span surfaces; none where these would be too many."""
    axes = surface_axes(factors)
    slices = list(_slices(axes, configurations)) if axes else []
    return slices if len(slices) <= MOST_SLICES else []


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
    slices = surface_slices(factors, configurations)
    shares = max(1, len(deciding)) * max(1, len(slices))
    drawn = []
    for metric in (*deciding, *(m for m in described if m.name in EXPLAINING)):
        judged = [v for v in verdicts if v.metric == metric.name] if metric in deciding else None
        made = (_surface(part, clean, metric, judged, promise, (1 - promise.confidence) / shares) for part in slices)
        drawn += [surface for surface in made if surface is not None]
    return tuple(drawn)


def _slices(axes: Sequence[SurfaceAxis], configurations: Sequence[Configuration]) -> Iterator[SurfaceSlice]:
    # Yield that of the baseline first; those with too few configurations for a curve are left out.
    along = {axis.factor for axis in axes}
    groups: dict[tuple[tuple[str, str], ...], list[Configuration]] = {}
    for configuration in sorted(configurations, key=lambda c: not c.baseline):
        key = tuple((name, level) for name, level in configuration.levels.items() if name not in along)
        groups.setdefault(key, []).append(configuration)
    varied = {name for key in groups for name, level in key if any((name, level) not in other for other in groups)}
    for key, group in groups.items():
        if len(group) >= FEWEST_POINTS:
            yield SurfaceSlice(tuple(axes), {name: level for name, level in key if name in varied}, tuple(group))


def _surface(
    part: SurfaceSlice, clean: Clean, metric: Metric, verdicts: Sequence[Verdict] | None, promise: Promise, alpha: float
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

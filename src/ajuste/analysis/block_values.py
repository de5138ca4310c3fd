"""A metric of several configurations by block: values without what blocks have in common, and which may be best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ajuste.analysis.pairs import Clean, Trials, clean_trials
from ajuste.model.metric import Metric
from ajuste.model.surface import SurfacePoint
from ajuste.study.resolved import ResolvedStudy
from ajuste_stats.best_sets import best_set
from ajuste_stats.block_tables import Blocks, level_half_widths, tabulate


@dataclass(frozen=True)
class Promise:
    """``confidence`` that all surfaces together hold with; what is smaller than ``smallest_effect`` does not matter."""

    confidence: float
    smallest_effect: float
    order_matters: bool = True


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


def contenders(resolved: ResolvedStudy, trials: Trials) -> tuple[str, ...]:
    """Return the configurations that may have the best mean of the first deciding metric; all while unknown."""
    metric, analysis = resolved.deciding[0], resolved.study.analysis
    order_matters = resolved.study.target.clock == "wall"
    blocks = tabulate_blocks(clean_trials(trials), resolved.names, metric, order_matters=order_matters)
    if blocks is None:
        return resolved.names
    best = best_set(blocks, metric.direction, (1 - analysis.confidence) / len(resolved.deciding))
    return tuple(blocks.names[place] for place in best.members)

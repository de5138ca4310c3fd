"""Comparisons of samples of fixed size, which nobody extends until they show something."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ajuste_stats.confidence_sequences import Interval
from ajuste_stats.effects import ALSO, Effect
from ajuste_stats.fixed_samples import FixedContrast, log_mean_contrast, mean_contrast, paired, unpaired
from ajuste_stats.ranks import rank_p_value
from ajuste_stats.rare_counts import rate_ratio
from ajuste_stats.rounding import (
    SMALLEST_RELATIVE_STEP,
    figure_steps,
    is_count,
    log_rounding_error,
    rounding_error,
)
from ajuste_stats.terms import Quantity, Scale

Array = NDArray[np.float64]
Units = NDArray[np.int64]


class Moments(NamedTuple):
    """The ``mean`` of ``n`` values, and its standard error; NaN if unknown."""

    mean: float
    sem: float
    n: int


@dataclass(frozen=True)
class FixedComparison:
    """An effect from samples of fixed size, with the ``contrast`` that it rests on.

    ``spreads`` are the standard deviations of both samples on the effect's scale, or the one of the differences of
    pairs; ``n`` how many independent values each has. ``typical`` is the change of the median where ranks differ for
    certain.
    """

    effect: Effect
    contrast: FixedContrast
    n: tuple[int, int]
    spreads: tuple[float, ...]
    typical: float | None = None


def compare_pairs(baseline: Array, other: Array, quantity: Quantity, alpha: float) -> FixedComparison:
    """Compare values that belong together pair by pair, with an interval of error rate ``alpha``."""
    left, right, scale = _on_scale(baseline, other, quantity)
    spread = float(np.std(right - left, ddof=1)) if len(left) > 1 else math.nan
    effect = _effect_of_values(paired(left, right), (left, scale), baseline, other, quantity, alpha)
    return FixedComparison(effect[1], effect[0], (len(left), len(right)), (spread,))


def compare_samples(
    baseline: Array,
    other: Array,
    quantity: Quantity,
    alpha: float,
    units: tuple[Units, Units] | None = None,
) -> FixedComparison:
    """Compare two samples as a whole, with an interval of error rate ``alpha``.

    With ``units`` the values of one unit, such as a process, are not independent: their means are compared.
    """
    left, right, scale = _on_scale(baseline, other, quantity)
    if units is not None:
        left, right = average_units(left, units[0]), average_units(right, units[1])
    contrast, effect = _effect_of_values(unpaired(left, right), (left, scale), baseline, other, quantity, alpha)
    typical = None
    if units is None and rank_p_value(left, right) < ALSO * alpha:
        typical = effect.natural(float(np.median(right) - np.median(left)))
    spreads = tuple(float(np.std(sample, ddof=1)) if len(sample) > 1 else math.nan for sample in (left, right))
    return FixedComparison(effect, contrast, (len(left), len(right)), spreads, typical)


def compare_moments(baseline: Moments, other: Moments, quantity: Quantity, alpha: float) -> FixedComparison:
    """Compare two samples of which only means and standard errors are known."""
    scale: Scale = "ratio" if quantity.scale == "ratio" and baseline.mean > 0 and other.mean > 0 else "difference"
    contrast = (log_mean_contrast if scale == "ratio" else mean_contrast)(*baseline, *other)
    spreads = tuple(side.sem * math.sqrt(side.n) / (side.mean if scale == "ratio" else 1) for side in (baseline, other))
    averages = (baseline.mean, other.mean)
    effect = _effect(contrast, scale, quantity, alpha, averages, quantity.resolution, 0.0)
    return FixedComparison(effect, contrast, (baseline.n, other.n), spreads)


def _on_scale(baseline: Array, other: Array, quantity: Quantity) -> tuple[Array, Array, Scale]:
    if quantity.scale == "ratio" and bool(np.all(baseline > 0) and np.all(other > 0)):
        return np.log(baseline), np.log(other), "ratio"
    return baseline, other, "difference"


def _effect_of_values(
    contrast: FixedContrast,
    on_scale: tuple[Array, Scale],
    baseline: Array,
    other: Array,
    quantity: Quantity,
    alpha: float,
) -> tuple[FixedContrast, Effect]:
    left, scale = on_scale
    averages = (float(np.mean(baseline)), float(np.mean(other)))
    both = np.concatenate([baseline, other])
    steps, rounding = figure_steps(quantity, baseline, other), 0.0
    if not is_count(quantity, both):
        sides = tuple(zip((baseline, other), steps, strict=True))
        errors = (max(log_rounding_error(side, step)) for side, step in sides)
        rounding = sum(errors if scale == "ratio" else (rounding_error(side, step) for side, step in sides))
    level = math.exp(float(np.mean(left))) if scale == "ratio" else float(np.mean(left))
    return contrast, replace(
        _effect(contrast, scale, quantity, alpha, averages, max(steps), rounding),
        baseline_level=level,
        mean_ratio=math.log(averages[1] / averages[0]) if scale == "ratio" else None,
        rates=None if np.any(both) else rate_ratio(baseline, other, alpha),
        trials=(baseline, other),
    )


def average_units(values: Array, units: Units) -> Array:
    """Return the mean of each unit of replication: values of one unit are not independent."""
    return np.asarray(np.bincount(units, values) / np.bincount(units))


def _effect(
    contrast: FixedContrast,
    scale: Scale,
    quantity: Quantity,
    alpha: float,
    averages: tuple[float, float],
    step: float,
    rounding: float,
) -> Effect:
    baseline, other = averages
    step = step or SMALLEST_RELATIVE_STEP * max(abs(baseline), abs(other))
    # Values that are all alike are known no better than a step of the figure (Sheppard's correction).
    floor = step / math.sqrt(6)
    if scale == "ratio":
        floor /= min(baseline, other)
    half = math.inf if math.isnan(contrast.error) else max(contrast.half_width(alpha), floor) + rounding
    return Effect(
        scale=scale,
        interval=Interval(round(contrast.freedom) + 1, contrast.difference, contrast.error**2, half),
        baseline_mean=baseline,
        step=step,
        same=contrast.difference == 0 and contrast.error == 0,
        fell_back=quantity.scale == "ratio" and scale == "difference",
        rounding=rounding if contrast.error or not any(averages) else half,  # More values would not narrow it.
    )

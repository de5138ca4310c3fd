"""Contrasts: weighted sums over the treatments of a block, such as main effects and interactions of factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ajuste_stats.confidence_sequences import mean_interval, widened
from ajuste_stats.effects import Effect
from ajuste_stats.rounding import figure_step, row_errors
from ajuste_stats.terms import Quantity, Scale

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ContrastTable:
    """Table of one quantity in complete blocks (across) by treatment (down), as logarithms where ``scale`` is *ratio*.

    ``rounding`` is the values' variance from their resolution, ``errors`` how far it may move their means.
    ``fell_back``: ratios were wanted, but a value is not positive.
    """

    values: Array
    scale: Scale
    rounding: Array
    errors: Array
    baseline_mean: float
    fell_back: bool


def contrast_table(values: Array, baseline: int, quantity: Quantity) -> ContrastTable:
    """Return the table of ``values``, at least one block and none of them NaN; ``baseline`` is the place of its row."""
    averages = np.abs(np.mean(values, axis=1))
    rounding = np.full(len(values), figure_step(quantity, values) ** 2 / 12)
    baseline_mean = float(np.mean(values[baseline]))
    as_ratio = quantity.scale == "ratio" and bool(np.all(values > 0))
    errors = row_errors(quantity, values, as_ratio=as_ratio)
    if as_ratio:
        return ContrastTable(np.log(values), "ratio", rounding / averages**2, errors, baseline_mean, fell_back=False)
    return ContrastTable(values, "difference", rounding, errors, baseline_mean, fell_back=quantity.scale == "ratio")


def contrast_effect(table: ContrastTable, weights: Array, quantity: Quantity, alpha: float) -> Effect:
    """Return the effect whose ``weights`` have a figure for each treatment and add up to 0, at error rate ``alpha``."""
    block_sums = weights @ table.values
    error = float(np.abs(weights) @ table.errors)
    interval = widened(mean_interval(block_sums, alpha=alpha, floor=float(weights**2 @ table.rounding)), error)
    same = bool(np.all(block_sums == 0))
    return Effect(
        table.scale, interval, table.baseline_mean, quantity.resolution, same, table.fell_back, rounding=error
    )

"""Shapley values of the parts of a whole, from blocks that hold some of their combinations.

A block holds the basepart (no part), the whole, each part alone and each left out. Of few parts it holds every other
combination too, and the parts' Shapley values are computed exactly. Of more it goes the way from nothing to the whole
in an order of the parts and in the reverse of that order: what each adds on the way, averaged over both ways, is its
Shapley value exactly as long as no three parts interact, and over many orders in any case.

For every block each figure is a weighted sum of the logarithms of its values (of the values where ratios are not
possible); the blocks' sums have the same anytime-valid interval as the pairs of two treatments.

Sources: Shapley (1953), "A value for n-person games"; Castro, Gómez and Tejada (2009), "Polynomial calculation of the
Shapley value based on sampling"; Mitchell et al. (2022), "Sampling permutations for Shapley value estimation", JMLR 23
(section 3, antithetic sampling).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ajuste_stats.confidence_sequences import mean_interval, widened
from ajuste_stats.effects import Effect
from ajuste_stats.rounding import figure_step, row_errors
from ajuste_stats.subsets import ORDERS, Subset, block_order, is_exact, of_block, subsets, way
from ajuste_stats.terms import Quantity, Scale

Share = Literal["share", "alone", "last", "between"]
"""A figure of a part: its Shapley value, what it does alone, as the last one added, and the difference of both."""
Weights: TypeAlias = NDArray[np.float64]

KINDS: Final[tuple[Share, ...]] = ("share", "alone", "last", "between")
TERMS: Final[Mapping[Share, int]] = {"share": 1, "alone": 2, "last": 2, "between": 4}
"""Values of one block that weigh as much as one in each."""


@cache
def weights(parts: int, block: int) -> tuple[NDArray[np.int64], Mapping[Share, Weights]]:
    """Return the places among ``subsets(parts)`` of a block's treatments, and each part's weights by figure."""
    every = {subset: place for place, subset in enumerate(subsets(parts))}
    held = of_block(parts, block)
    place = {subset: column for column, subset in enumerate(held)}
    whole = frozenset(range(parts))
    rows = {kind: np.zeros((parts, len(held))) for kind in KINDS}
    for part in range(parts):
        alone = frozenset({part})
        _step(rows["alone"][part], place, frozenset(), alone)
        _step(rows["last"][part], place, whole - alone, whole)
    rows["between"] = rows["last"] - rows["alone"]
    if is_exact(parts):
        _exactly(rows["share"], parts, place)
        return np.array([every[subset] for subset in held]), rows
    order = block_order(parts, block)
    for direction in (order, order[::-1]):
        for part, (before, after) in zip(direction, pairwise(way(direction)), strict=True):
            _step(rows["share"][part], place, before, after, 0.5)
    return np.array([every[subset] for subset in held]), rows


def _step(row: Weights, place: Mapping[Subset, int], before: Subset, after: Subset, weight: float = 1.0) -> None:
    row[place[after]] += weight
    row[place[before]] -= weight


def _exactly(into: Weights, parts: int, place: Mapping[Subset, int]) -> None:
    # Shapley's formula: what a part adds to each combination of others, weighted by how many orders have that.
    for subset in place:
        for part in set(range(parts)) - subset:
            size = len(subset)
            weight = math.factorial(size) * math.factorial(parts - size - 1) / math.factorial(parts)
            _step(into[part], place, subset, subset | {part}, weight)


def block_sums(values: Weights, blocks: Sequence[int], parts: int) -> Mapping[Share, Weights]:
    """Return for each kind of figure a row for each part, a column for each block that has all it takes.

    ``values`` has a row for each of ``subsets(parts)`` and a column for each of ``blocks``, by their numbers; NaN where
    there is no value.
    """
    sums_by_kind: dict[Share, list[Weights]] = {kind: [] for kind in KINDS}
    for number, column in zip(blocks, values.T, strict=True):
        places, rows = weights(parts, 0 if is_exact(parts) else number % ORDERS)
        held = column[places]
        missing = np.isnan(held)
        for kind, sums in sums_by_kind.items():
            if not missing.any() or not np.any(rows[kind][:, missing]):
                sums.append(rows[kind] @ np.where(missing, 0.0, held))
    return {kind: np.stack(sums, axis=1) if sums else np.empty((parts, 0)) for kind, sums in sums_by_kind.items()}


@dataclass(frozen=True)
class SubsetTable:
    """Table of one quantity by subset (down) and block (across), NaN where there is none; as logarithms if ``ratio``.

    ``blocks`` has the numbers of the blocks. ``rounding`` is the variance from the ``step`` of the figures, ``error``
    how far it may have moved any mean. ``fell_back``: ratios were wanted, but a value is not positive.
    """

    values: Weights
    blocks: Sequence[int]
    ratio: bool
    rounding: float
    error: float
    step: float
    basepart_mean: float
    fell_back: bool


def subset_table(values: Weights, blocks: Sequence[int], quantity: Quantity) -> SubsetTable | None:
    """Return the table of ``values``, a row for each of ``subsets``; ``None`` where the basepart has none."""
    if not values.size or np.all(np.isnan(values[0])):
        return None
    basepart_mean = float(np.nanmean(values[0]))
    step = figure_step(quantity, values[np.isfinite(values)])
    ratio = quantity.scale == "ratio" and bool(np.nanmin(values) > 0)
    rounding = step**2 / 12 / (basepart_mean**2 if ratio else 1)
    fell_back = quantity.scale == "ratio" and not ratio
    error = float(np.max(row_errors(quantity, values, as_ratio=ratio)))
    return SubsetTable(
        np.log(values) if ratio else values, blocks, ratio, rounding, error, step, basepart_mean, fell_back
    )


def effect_of_sums(table: SubsetTable, alpha: float, block_values: Weights, terms: int = 2) -> Effect | None:
    """Return the mean of the blocks' sums, of about ``terms`` values each, whose rounding is the least variance.

    ``None`` without a block.
    """
    if not len(block_values):
        return None
    error = max(2, terms) * table.error  # The weights of a share add up to 2 as well.
    interval = widened(mean_interval(block_values, alpha=alpha, floor=terms * table.rounding), error)
    same = bool(np.all(block_values == 0))
    scale: Scale = "ratio" if table.ratio else "difference"
    return Effect(scale, interval, table.basepart_mean, table.step, same, table.fell_back, rounding=error)

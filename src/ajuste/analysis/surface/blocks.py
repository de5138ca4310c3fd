"""The blocks of one metric as a table, and what is left of it when all that blocks have in common is taken out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.effects import SMALLEST_RELATIVE_STEP
from ajuste.analysis.pairs import Clean
from ajuste.model.metric import Metric, Scale

Array = NDArray[np.float64]

_ROUNDS: Final = 60
_WIDE: Final = 10.0
"""Times the smallest mean: what spans more is compared by ratios if it can be, also where its verdicts are not."""


@dataclass(frozen=True)
class Blocks:
    """``values`` has a row for each of ``names`` and a column for each block, NaN where there is no figure:
    logarithms where ``scale`` is ``ratio``.

    ``rounding`` is the variance that each row's values have from their resolution alone. ``order`` says when in its
    block a trial ran; ``None`` where that cannot matter.
    """

    names: tuple[str, ...]
    values: Array
    scale: Scale
    rounding: Array
    order: Array | None = None

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many figures each row has."""
        return np.asarray(np.count_nonzero(np.isfinite(self.values), axis=1), dtype=np.int64)

    @cached_property
    def levels(self) -> Array:
        """The mean of each row were all rows measured in all blocks: least squares of rows and blocks, whose effects
        add up.
        """
        return self._fitted[0]

    @cached_property
    def deviations(self) -> Array:
        """What is left of each figure without its row's level and its block's effect."""
        levels, effects = self._fitted
        return np.asarray(self.values - levels[:, None] - effects[None, :])

    @cached_property
    def variances(self) -> Array:
        """The unbiased variance of each row's figures within blocks, at least that of rounding; NaN below two figures.

        Deviations from the means of blocks of k figures are too small by (k − 1)/k (Morey 2008, "Confidence intervals
        from normalized data", Tutorials in Quantitative Methods for Psychology 4).
        """
        each = float(np.mean(np.sum(np.isfinite(self.values), axis=0)))
        shrunk = each / (each - 1) if each > 1 else 1.0
        squares = np.nansum(self.deviations**2, axis=1) * shrunk
        with np.errstate(invalid="ignore", divide="ignore"):
            found = squares / (self.counts - 1)
        return np.where(self.counts > 1, np.maximum(found, self.rounding), np.nan)

    @cached_property
    def _fitted(self) -> tuple[Array, Array]:
        have = np.isfinite(self.values)
        filled = np.where(have, self.values, 0.0)
        rows, columns = np.maximum(1, have.sum(axis=1)), np.maximum(1, have.sum(axis=0))
        effects = np.zeros(self.values.shape[1])
        for _ in range(_ROUNDS):
            levels = (filled - have * effects[None, :]).sum(axis=1) / rows
            found = (filled - have * levels[:, None]).sum(axis=0) / columns
            found -= found.mean()
            settled = bool(np.all(np.abs(found - effects) <= 1e-12 * (1 + np.abs(found))))
            effects = found
            if settled:
                break
        return np.asarray((filled - have * effects[None, :]).sum(axis=1) / rows), effects


def blocks_of(clean: Clean, names: Sequence[str], metric: Metric, *, order_matters: bool) -> Blocks | None:
    """The clean figures of ``metric``, of those of ``names`` that have any; ``None`` where less than two do."""
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
    means = np.abs(np.nanmean(values, axis=1))
    rounding = np.full(len(values), (metric.resolution or SMALLEST_RELATIVE_STEP * float(np.max(means))) ** 2 / 12)
    positive = bool(np.all(values[np.isfinite(values)] > 0))
    as_ratio = positive and (metric.scale == "ratio" or float(np.max(means)) > _WIDE * float(np.min(means)))
    return Blocks(
        names=tuple(name for name, kept in zip(names, measured, strict=True) if kept),
        values=np.log(values) if as_ratio else values,
        scale="ratio" if as_ratio else "difference",
        rounding=rounding / means**2 if as_ratio else rounding,
        order=_order(clean, places) if order_matters else None,
    )


def _order(clean: Clean, places: NDArray[np.int64]) -> Array:
    """What is repeated runs after all that is not."""
    measured = clean.measured
    when = measured.attempt[places] * (int(np.max(measured.position, initial=0)) + 1) + measured.position[places]
    return np.asarray(when, dtype=np.float64)

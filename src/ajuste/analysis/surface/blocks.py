"""The blocks of one metric as a table, and what is left of it when all that blocks have in common is taken out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, polygamma

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


# Variances of many configurations, each from a few blocks: those of all tell how far one of them is to be believed.
#
# The empirical Bayes estimate of Smyth (2004, "Linear models and empirical Bayes methods for assessing differential
# expression in microarray experiments", Statistical Applications in Genetics and Molecular Biology 3): where the
# sample variances differ no more than chance makes them, nearly their common value; where they differ more, nearly
# each its own.


MOST_FREEDOM: Final = 1e6
FEWEST_BLOCKS: Final = 3
"""With less no interval is given: the variance of a row that is unlike the others could not be told from theirs."""
_TINY: Final = 1e-300
_TINY_FREEDOM: Final = 1e-9


def believed(blocks: Blocks) -> tuple[Array, Array]:
    """The variance of each row within blocks for intervals, and its degrees of freedom: the moderated one, or its own
    where that is larger. A row that is noisier than most must not be taken for as quiet as they are.
    """
    common, freedom = moderated(blocks.variances, (blocks.counts - 1).astype(np.float64))
    return np.maximum(np.nan_to_num(blocks.variances), common), np.maximum(freedom, _TINY_FREEDOM)


def moderated(variances: Array, freedom: Array) -> tuple[Array, Array]:
    """The moderated ``variances`` and their degrees of freedom; both as long as what is given.

    Entries without freedom (NaN, 0) get the common variance, with the prior's own freedom.
    """
    known = np.isfinite(variances) & (freedom > 0)
    if not np.any(known):
        return variances, np.zeros(len(variances))
    own, degrees = np.maximum(variances[known], _TINY), freedom[known]
    prior, prior_freedom = _prior(own, degrees)
    held = np.where(known, freedom, 0.0)
    squares = np.where(known, variances, 0.0) * held
    total = held + prior_freedom
    # No prior knows more than all the variances it was made from.
    return (squares + prior * prior_freedom) / total, np.minimum(total, float(np.sum(degrees)))


def _prior(variances: Array, freedom: Array) -> tuple[float, float]:
    """The common variance, and how many degrees of freedom it is worth."""
    logs = np.log(variances) - digamma(freedom / 2) + np.log(freedom / 2)
    middle = float(np.mean(logs))
    if len(logs) < 2:
        return float(np.exp(middle)), _TINY_FREEDOM
    excess = float(np.var(logs, ddof=1) - np.mean(polygamma(1, freedom / 2)))
    if excess <= 0:
        return float(np.average(variances, weights=freedom)), MOST_FREEDOM
    degrees = min(MOST_FREEDOM, 2 * _trigamma_inverse(excess))
    return float(np.exp(middle + digamma(degrees / 2) - np.log(degrees / 2))), degrees


def _trigamma_inverse(value: float) -> float:
    """Newton's method on 1/trigamma, which is convex (Smyth 2004, appendix)."""
    if value > 1e7:
        return float(1 / np.sqrt(value))
    if value < 1e-6:
        return 1 / value
    found = 0.5 + 1 / value
    for _ in range(50):
        at = float(polygamma(1, found))
        step = at * (1 - at / value) / float(polygamma(2, found))
        found += step
        if -step / found < 1e-9:
            break
    return found

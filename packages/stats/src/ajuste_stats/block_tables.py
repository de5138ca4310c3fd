"""Block tables: one quantity of many treatments by block, and its noise without what all of a block have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

from ajuste_stats.confidence_sequences import mixture_half_width
from ajuste_stats.rounding import figure_step, row_errors
from ajuste_stats.terms import Quantity, Scale

Array = NDArray[np.float64]

_ROUNDS: Final = 60
# Times the smallest mean: a larger span is compared by ratios where possible, even if the verdicts are not.
_WIDE: Final = 10.0

MOST_FREEDOM: Final = 1e6

FEWEST_BLOCKS: Final = 3
"""Fewer give no interval: a row of another variance would not be distinguishable."""

_LEAST: Final = 1e-300
_TINY_FREEDOM: Final = 1e-9

# Figures of a row from which on its own variance is to be trusted, also if they have two modes.
_ENOUGH: Final = 10


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


def tabulate(names: Sequence[str], values: Array, quantity: Quantity, order: Array | None = None) -> Blocks:
    """Return the table of ``values``, a row for each of ``names`` and a column for each block, NaN where none is known.

    Each row and each column has a value; of few rows and wide spans logarithms are taken where all are positive.
    """
    averages = np.abs(np.nanmean(values, axis=1))
    known = values[np.isfinite(values)]
    rounding = np.full(len(values), figure_step(quantity, known) ** 2 / 12)
    positive = bool(np.all(known > 0))
    as_ratio = positive and (quantity.scale == "ratio" or float(np.max(averages)) > _WIDE * float(np.min(averages)))
    return Blocks(
        names=tuple(names),
        values=np.log(values) if as_ratio else values,
        scale="ratio" if as_ratio else "difference",
        rounding=rounding / averages**2 if as_ratio else rounding,
        order=order,
        errors=row_errors(quantity, values, as_ratio=as_ratio),
    )


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
    logs = np.log(variances) - scipy.special.digamma(freedom / 2) + np.log(freedom / 2)
    middle = float(np.mean(logs))
    if len(logs) < 2:
        return float(np.exp(middle)), _TINY_FREEDOM
    excess = float(np.var(logs, ddof=1) - np.mean(scipy.special.polygamma(1, freedom / 2)))
    if excess <= 0:
        return float(np.average(variances, weights=freedom)), MOST_FREEDOM
    degrees = min(MOST_FREEDOM, 2 * _trigamma_inverse(excess))
    return float(np.exp(middle + scipy.special.digamma(degrees / 2) - math.log(degrees / 2))), degrees


def _trigamma_inverse(value: float) -> float:
    # Newton's method on 1/trigamma, which is convex (Smyth 2004, appendix).
    if value > 1e7:
        return float(1 / np.sqrt(value))
    if value < 1e-6:
        return 1 / value
    root = 0.5 + 1 / value
    for _ in range(50):
        at = scipy.special.polygamma(1, root)
        step = at * (1 - at / value) / scipy.special.polygamma(2, root)
        root += step
        if -step / root < 1e-9:
            break
    return root


def level_half_widths(blocks: Blocks, alpha: float) -> Array:
    """Return half the width of the anytime-valid interval of each level; all hold together at error rate ``alpha``."""
    variances, freedom = believed(blocks)
    half_widths = mixture_half_width(blocks.counts.astype(np.float64), variances, freedom, alpha / len(blocks.names))
    if blocks.errors is not None:
        half_widths = half_widths + blocks.errors
    return np.where(blocks.counts >= FEWEST_BLOCKS, half_widths, np.inf)

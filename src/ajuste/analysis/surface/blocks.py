"""The blocks of one metric as a table, and its residuals without what all blocks have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, ndtri, polygamma

from ajuste.analysis.effects import SMALLEST_RELATIVE_STEP
from ajuste.analysis.pairs import Clean
from ajuste.model.metric import Metric, Scale
from ajuste.model.results import Measured
from ajuste.model.surface import Correlation

Array = NDArray[np.float64]

_ROUNDS: Final = 60
# Times the smallest mean: a larger span is compared by ratios where possible, even if the verdicts are not.
_WIDE: Final = 10.0


@dataclass(frozen=True)
class Blocks:
    """A table with a row for each of ``names`` and a column for each block, NaN where there is no figure.

    ``values`` are logarithms where ``scale`` is *ratio*. ``rounding`` is the variance of each row's values from their
    resolution alone. ``order`` says when in its block a trial ran; ``None`` where that cannot matter.
    """

    names: tuple[str, ...]
    values: Array
    scale: Scale
    rounding: Array
    order: Array | None = None

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
    rounding = np.full(len(values), (metric.resolution or SMALLEST_RELATIVE_STEP * float(np.max(averages))) ** 2 / 12)
    positive = bool(np.all(values[np.isfinite(values)] > 0))
    as_ratio = positive and (metric.scale == "ratio" or float(np.max(averages)) > _WIDE * float(np.min(averages)))
    return Blocks(
        names=tuple(name for name, kept in zip(names, measured, strict=True) if kept),
        values=np.log(values) if as_ratio else values,
        scale="ratio" if as_ratio else "difference",
        rounding=rounding / averages**2 if as_ratio else rounding,
        order=_order(clean, places) if order_matters else None,
    )


def _order(clean: Clean, places: NDArray[np.int64]) -> Array:
    # What is repeated runs after all that is not.
    measured = clean.measured
    when = measured.attempt[places] * (int(np.max(measured.position, initial=0)) + 1) + measured.position[places]
    return np.asarray(when, dtype=np.float64)


MOST_FREEDOM: Final = 1e6
FEWEST_BLOCKS: Final = 3
"""Fewer give no interval: a row of another variance would not be distinguishable."""
_TINY: Final = 1e-300
_TINY_FREEDOM: Final = 1e-9


def believed(blocks: Blocks) -> tuple[Array, Array]:
    """Return the moderated variance of each row, or its own if larger, and its degrees of freedom.

    A row that is noisier than most must not count as quiet.
    """
    common, freedom = moderated(blocks.variances, (blocks.counts - 1).astype(np.float64))
    return np.maximum(np.nan_to_num(blocks.variances), common), np.maximum(freedom, _TINY_FREEDOM)


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
    observed, degrees = np.maximum(variances[known], _TINY), freedom[known]
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
"""Of fewer configurations a rank correlation tells nothing."""


def correlations(
    configurations: Sequence[Measured], deciding: Sequence[Metric], metrics: Sequence[Metric], confidence: float
) -> tuple[Correlation, ...]:
    """Return each of ``deciding`` with every other of ``metrics`` that varies, the strongest first."""
    strongest: list[Correlation] = []
    for metric in deciding:
        columns = [(other, _columns(configurations, metric.name, other.name)) for other in metrics if other != metric]
        usable = [(other, first, second) for other, (first, second) in columns if _varies(first) and _varies(second)]
        alpha = (1 - confidence) / max(1, len(usable))
        each = [_correlation(metric, other, first, second, confidence, alpha) for other, first, second in usable]
        strongest += sorted(each, key=lambda row: -abs(row.rho))
    return tuple(strongest)


def rank_correlation(first: Array, second: Array) -> float:
    """Return Spearman's ρ; equal values share their mean rank."""
    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


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


def _columns(configurations: Sequence[Measured], first: str, second: str) -> tuple[Array, Array]:
    both = [c.metrics for c in configurations if first in c.metrics and second in c.metrics]
    return np.array([m[first].mean for m in both]), np.array([m[second].mean for m in both])


def _ranks(values: Array) -> Array:
    # Ranks from 1 on; `scipy.stats` has them too, but takes longer to load than most analyses take.
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def _varies(values: Array) -> bool:
    return len(values) >= FEWEST and bool(np.ptp(values) > 0)


def _correlation(
    metric: Metric,
    other: Metric,
    first: Array,
    second: Array,
    confidence: float,
    alpha: float,
) -> Correlation:
    rho = rank_correlation(first, second)
    low, high = interval(rho, len(first), alpha)
    return Correlation(
        metric=metric.name, other=other.name, rho=rho, low=low, high=high, n=len(first), level=confidence
    )

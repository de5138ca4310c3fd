"""Variances of many configurations, each from a few blocks: those of all tell how far one of them is to be believed.

The empirical Bayes estimate of Smyth (2004, "Linear models and empirical Bayes methods for assessing differential
expression in microarray experiments", Statistical Applications in Genetics and Molecular Biology 3): where the sample
variances differ no more than chance makes them, nearly their common value; where they differ more, nearly each its own.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.special import digamma, polygamma

from ajuste.analysis.surface.blocks import Array, Blocks

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

"""Random effects: groups, such as machines or boots, as a sample of groups.

The mean over groups is that of DerSimonian and Laird (1986, "Meta-analysis in clinical trials", Controlled Clinical
Trials 7) with the interval of Hartung and Knapp (2001, "A refined method for the meta-analysis of controlled clinical
trials with binary outcome", Statistics in Medicine 20) and Sidik and Jonkman (2002, the same journal, 21), never
narrower than with known errors (Röver, Knapp and Friede 2015, BMC Medical Research Methodology 15). A new group's
effect lies in the prediction interval of Higgins, Thompson and Spiegelhalter (2009, "A re-evaluation of random-effects
meta-analysis", Journal of the Royal Statistical Society A 172).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]

REFINEMENTS: Final = 8
"""Number of refinements; a step narrows down the ratio of two variances tenfold."""


@dataclass(frozen=True)
class RandomEffects:
    """``mean`` over groups with its standard ``error``, of ``freedom`` degrees; ``variance`` is between groups."""

    mean: float
    error: float
    freedom: int
    variance: float

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the interval of the mean."""
        return self._around(self.error, alpha)

    def prediction(self, alpha: float) -> tuple[float, float]:
        """Return the interval of the effect on one more group."""
        return self._around(math.hypot(self.error, math.sqrt(self.variance)), alpha)

    def _around(self, error: float, alpha: float) -> tuple[float, float]:
        half = float(scipy.special.stdtrit(self.freedom, 1 - alpha / 2)) * error
        return self.mean - half, self.mean + half


def pool_effects(effects: Floats, variances: Floats) -> RandomEffects:
    """Combine the ``effects`` of groups, whose squared standard errors are ``variances``; at least two of each."""
    weights = 1 / variances
    fixed = np.average(effects, weights=weights)
    total = weights.sum()
    excess = float(np.sum(weights * (effects - fixed) ** 2)) - (len(effects) - 1)
    between = max(0.0, excess / float(total - np.sum(weights**2) / total))
    weights = 1 / (variances + between)
    mean = float(np.average(effects, weights=weights))
    scatter = float(np.sum(weights * (effects - mean) ** 2)) / (len(effects) - 1)
    return RandomEffects(mean, math.sqrt(max(1.0, scatter) / float(weights.sum())), len(effects) - 1, between)


def pooled_variances(values: Sequence[Floats]) -> Floats | None:
    """Return the squared standard error of each group's mean, from one variance within groups; ``None`` if no
    group has two values that differ.
    """
    freedom = sum(len(block_effects) - 1 for block_effects in values)
    within = sum(float(np.sum((block_effects - np.mean(block_effects)) ** 2)) for block_effects in values)
    if not freedom or not within:
        return None
    return within / freedom / np.array([len(block_effects) for block_effects in values])


def variance_components(values: Floats, groups: NDArray[np.int64]) -> tuple[float, float]:
    """Return the variances within and between ``groups``, at least two, by restricted maximum likelihood (REML)."""
    _, groups = np.unique(groups, return_inverse=True)
    count = np.bincount(groups).astype(np.float64)
    averages = np.bincount(groups, values) / count
    within = float(np.sum((values - averages[groups]) ** 2))
    freedom = len(values) - 1

    def fit(ratios: Floats) -> tuple[Floats, Floats]:
        # For each ratio of the two variances, the one within and how unlikely the values are.
        widened = 1 + count * ratios[:, None]
        weights = count / widened
        whole = np.sum(weights, axis=1)
        middle = np.sum(weights * averages, axis=1) / whole
        variance = (within + np.sum(weights * (averages - middle[:, None]) ** 2, axis=1)) / freedom
        with np.errstate(divide="ignore"):
            unlikely = freedom * np.log(variance) + np.sum(np.log(widened), axis=1) + np.log(whole)
        return variance, unlikely

    ratios = np.r_[0.0, np.geomspace(1e-6, 1e6, 121)]
    for _ in range(REFINEMENTS):
        best = int(np.argmin(fit(ratios)[1]))
        if best == 0 and ratios[0] == 0:
            break
        ratios = np.linspace(ratios[max(best - 1, 0)], ratios[min(best + 1, len(ratios) - 1)], 21)
    variance, unlikely = fit(ratios)
    best = int(np.argmin(unlikely))
    return float(variance[best]), float(ratios[best] * variance[best])

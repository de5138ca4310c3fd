"""Rare counts: what so few events say of the ratio of two rates.

Given that an event happened, it happened under the other treatment with probability p = r / (1 + r) if rates have
the ratio r and both were measured equally long (Przyborowski and Wilenski 1940, "Homogeneity of results in testing
samples from Poisson series", Biometrika 31). The evidence of k of n events against p is the mixture of Robbins (1970,
"Statistical methods related to the law of the iterated logarithm", Annals of Mathematical Statistics 41) with weight
Beta(1/2, 1/2); the p that it does not refute hold at all looks together. Trials without an event prove nothing.

Events that come together are fewer than they seem. Within a block the difference of two counts of Poisson has the
variance of their sum; where it is more, the number of events is divided by the dispersion (Wedderburn 1974,
"Quasi-likelihood functions", Biometrika 61).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]

FARTHEST: Final = 40.0
"""Log odds farther than this from the estimate count as infinite."""
_HALVINGS: Final = 50


@dataclass(frozen=True)
class RateRatio:
    """The ratio of the other rate to the baseline's, from ``low`` to ``high``, by so many independent ``events``."""

    low: float
    high: float
    events: float


def are_rare(baseline: Array, other: Array) -> bool:
    """Return whether these are amounts of something that some trials have none of."""
    both = np.concatenate([baseline, other])
    return bool(np.all(both >= 0) and np.any(both == 0))


def rate_ratio(baseline: Array, other: Array, alpha: float) -> RateRatio:
    """Return the ratio of rates from counts, or amounts, of the same blocks, with error rate ``alpha`` at all looks."""
    events = float(np.sum(baseline) + np.sum(other))
    if events == 0:
        return RateRatio(0.0, math.inf, 0.0)
    dispersion = float(np.sum((other - baseline) ** 2)) / events
    if np.all(baseline == np.round(baseline)) and np.all(other == np.round(other)):
        dispersion = max(1.0, dispersion)
    dispersion = dispersion or 1.0
    few, more = float(np.sum(other)) / dispersion, float(np.sum(baseline)) / dispersion
    mixed = scipy.special.betaln(few + 0.5, more + 0.5) - scipy.special.betaln(0.5, 0.5) + math.log(alpha)

    def bound(direction: float) -> float:
        # The nearest refuted log odds in that direction, by bisection; infinite where none is.
        odds = math.log((few + 0.5) / (more + 0.5))
        near, far = odds, odds + direction * FARTHEST
        if (few if direction < 0 else more) == 0:
            return direction * math.inf
        for _ in range(_HALVINGS):
            middle = (near + far) / 2
            possible = mixed + few * math.log1p(math.exp(-middle)) + more * math.log1p(math.exp(middle)) < 0
            near, far = (middle, far) if possible else (near, middle)
        return far

    return RateRatio(math.exp(bound(-1)), math.exp(bound(1)), events / dispersion)

"""The 3-sigma rule, as many people compare by it.

The rule: nearly all values lie within three standard deviations of their mean (at most one in twenty of any unimodal
distribution does not: Vysochanskij and Petunin; Pukelsheim 1994, "The Three Sigma Rule", The American Statistician
48(2), 88-91). As a comparison: two means are called different where they are further apart than three standard
deviations of their difference, √(s₁² + s₂²). It is used in two forms, distinguished here: with the standard
deviations of single values, and with those of the means, s/√n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy

from ajuste_stats.pairs import Pairs

SIGMAS: Final = 3.0


@dataclass(frozen=True)
class Rule:
    """Answers of the rule: whether single ``values`` and ``averages`` differ; ``None`` below two values of either."""

    values: bool | None
    averages: bool | None


def apply_rule(first: tuple[float, float, int], other: tuple[float, float, int]) -> Rule:
    """Apply the rule to two samples, each as its mean, standard deviation and number of values."""
    (mean, sd, n), (other_mean, other_sd, other_n) = first, other
    apart = abs(mean - other_mean)
    return Rule(
        values=apart > SIGMAS * math.hypot(sd, other_sd),
        averages=apart > SIGMAS * math.hypot(sd / n**0.5, other_sd / other_n**0.5),
    )


def pairing_gain(matched: Pairs) -> float:
    """Return the factor by which pairs narrow the standard deviation of the difference; 1 if unknown."""
    if len(matched) < 2:
        return 1.0
    paired = float(np.std(matched.other - matched.baseline, ddof=1))
    unpaired = math.hypot(float(np.std(matched.baseline, ddof=1)), float(np.std(matched.other, ddof=1)))
    return unpaired / paired if paired > 0 else math.inf if unpaired > 0 else 1.0


def chance(n: int) -> float:
    """Return how often the rule calls equal samples of ``n`` values different: Student's t with 2n − 2 degrees."""
    return float(2 * scipy.special.stdtr(2 * n - 2, -SIGMAS))

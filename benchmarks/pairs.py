"""How much more one of two ways takes than the other, measured in pairs, whatever else the machine does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from scipy.stats import norm


@dataclass(frozen=True)
class Slowdown:
    """By how many per cent more, with the limits of a 95 % interval."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:+.2f} % (95 %: {self.low:+.2f} … {self.high:+.2f} %)"


def slowdown(ones: Sequence[float], others: Sequence[float]) -> Slowdown:
    """Of ``others`` against ``ones``, pair by pair.

    The Hodges-Lehmann estimate of the logarithm of the ratio and the interval that belongs to Wilcoxon's signed-rank
    test, in its normal approximation (Hollander and Wolfe, Nonparametric Statistical Methods, 3.2 and 3.3): a moment in
    which the machine is busy with something else moves the mean of pairs, and hardly these.
    """
    logs = [math.log(other / one) for one, other in zip(ones, others, strict=True)]
    n = len(logs)
    averages = sorted((one + other) / 2 for one, other in combinations_with_replacement(logs, 2))
    width = norm.ppf(0.975) * math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    rank = max(0, math.floor(n * (n + 1) / 4 - width))
    middle = len(averages) // 2
    estimate = averages[middle] if len(averages) % 2 else (averages[middle - 1] + averages[middle]) / 2
    found = (100 * math.expm1(log) for log in (estimate, averages[rank], averages[-1 - rank]))
    return Slowdown(*found)

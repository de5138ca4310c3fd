"""The few distributions and special functions that the statistics need: scipy has them too, in 140 MB."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from statistics import NormalDist
from typing import Final

_NORMAL: Final = NormalDist()
_SMALLEST: Final = 1e-300
_PRECISION: Final = 1e-16
_MOST_TERMS: Final = 100_000
_POINTS: Final = 2_000
_LARGE: Final = 20.0
"""From here on the asymptotic series of digamma and its derivatives are exact in double precision."""


def normal_cdf(x: float) -> float:
    """The probability of at most ``x``, precise in the far tail too."""
    return math.erfc(-x / math.sqrt(2)) / 2


def normal_quantile(probability: float) -> float:
    """The inverse of ``normal_cdf``; ±inf at 0 and 1."""
    if not 0 < probability < 1:
        return math.copysign(math.inf, probability - 0.5)
    return _NORMAL.inv_cdf(probability)


def wilson(count: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval for a share of ``count`` in ``of`` (Wilson 1927, Journal of the American Statistical Association
    22).
    """
    z = normal_quantile((1 + confidence) / 2)
    share, whole = count / of, 1 + z * z / of
    middle = share + z * z / (2 * of)
    half = z * math.sqrt(share * (1 - share) / of + (z / (2 * of)) ** 2)
    return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)


def student_cdf(freedom: float, x: float) -> float:
    """The probability of at most ``x`` under Student's t with ``freedom`` > 0 degrees of freedom (DLMF 8.17.21)."""
    tail = f_tail(1, freedom, x * x) / 2
    return tail if x < 0 else 1 - tail


@lru_cache(maxsize=4096)
def student_quantile(freedom: float, probability: float) -> float:
    """The inverse of ``student_cdf``; ±inf at 0 and 1."""
    middle = abs(2 * probability - 1)
    if not middle:
        return 0.0
    if middle < 0.5:
        square = f_quantile(1, freedom, middle)  # t² is F(1, freedom)
    else:
        square = _f_beyond(1, freedom, 2 * min(probability, 1 - probability))
    return math.copysign(math.sqrt(square), probability - 0.5)


def noncentral_student_cdf(freedom: float, shift: float, x: float) -> float:
    """The probability of at most ``x`` under the noncentral t: (Z + ``shift``) / s, where s² is χ²/``freedom``.

    The mean of Φ(x s - shift) over s, by the trapezoidal rule in log s, where the integrand decays at both ends so
    quickly that the rule is as precise as the sum (Trefethen and Weideman 2014, SIAM Review 56).
    """
    step, points = _spreads(freedom)
    return step * math.fsum(density * normal_cdf(x * spread - shift) for spread, density in points)


@lru_cache(maxsize=16)
def _spreads(freedom: float) -> tuple[float, list[tuple[float, float]]]:
    """The points of the rule: each s and its density, ``step`` apart in log s."""
    low = -min(40 / freedom + 0.5, 9 / math.sqrt(freedom)) if freedom > 324 else -(40 / freedom + 0.5)
    high = 7 / math.sqrt(freedom)
    step = (high - low) / _POINTS
    constant = math.log(2) + freedom / 2 * math.log(freedom / 2) - math.lgamma(freedom / 2)
    logs = (low + place * step for place in range(_POINTS + 1))
    return step, [(math.exp(log), math.exp(constant + freedom * log - freedom / 2 * math.exp(2 * log))) for log in logs]


def f_tail(between: float, within: float, x: float) -> float:
    """The probability of more than ``x`` under F with ``between`` and ``within`` degrees of freedom."""
    if x <= 0:
        return 1.0
    whole = within + between * x
    if between * x < within:  # the smaller of the two shares is the precise one
        return 1 - regularized_beta(between / 2, within / 2, between * x / whole)
    return regularized_beta(within / 2, between / 2, within / whole)


def f_quantile(between: float, within: float, probability: float) -> float:
    """The value that F exceeds with probability 1 - ``probability``."""
    if probability > 0.5:
        return _f_beyond(between, within, 1 - probability)
    share = _rising(lambda z: regularized_beta(between / 2, within / 2, z), probability)
    return within / between * share / (1 - share)


def _f_beyond(between: float, within: float, tail: float) -> float:
    """The value that F exceeds with probability ``tail``."""
    if tail <= 0:
        return math.inf
    share = _rising(lambda z: regularized_beta(within / 2, between / 2, z), tail)
    return within / between * (1 - share) / share


def chi_squared_cdf(freedom: float, x: float) -> float:
    """The probability of at most ``x`` under χ²: the regularized incomplete gamma function (DLMF 8.7.1, 8.9.2)."""
    a, z = freedom / 2, x / 2
    if z <= 0:
        return 0.0
    front = math.exp(a * math.log(z) - z - math.lgamma(a + 1))
    if z < a + 1:
        term = total = 1.0
        for n in range(1, _MOST_TERMS):
            term *= z / (a + n)
            total += term
            if term < total * _PRECISION:
                break
        return front * total
    fraction = _continued(lambda n: -n * (n - a), lambda n: z + 2 * n + 1 - a)
    return 1 - front * a / fraction


def chi_squared_quantile(freedom: float, probability: float) -> float:
    """The inverse of ``chi_squared_cdf``."""
    most = 2.0
    while chi_squared_cdf(freedom, most) < probability:
        most *= 2
    return most * _rising(lambda share: chi_squared_cdf(freedom, most * share), probability)


def log_beta(a: float, b: float) -> float:
    """The logarithm of the beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def regularized_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b) by its continued fraction (DLMF 8.17.22), on the side where that converges quickly."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - regularized_beta(b, a, 1 - x)

    def numerator(n: int) -> float:
        m = n // 2
        if n % 2:
            return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))

    front = math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta(a, b)) / a
    return front / _continued(numerator, lambda _: 1.0)


def digamma(x: float) -> float:
    """The derivative of log Γ at ``x`` > 0 (DLMF 5.11.2 after 5.5.2)."""
    shifted, below = _shifted(x)
    y = 1 / (shifted * shifted)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760)))))
    return math.log(shifted) - 0.5 / shifted - series - math.fsum(1 / one for one in below)


def trigamma(x: float) -> float:
    """The second derivative of log Γ at ``x`` > 0 (DLMF 5.15.8 after 5.15.5)."""
    shifted, below = _shifted(x)
    y = 1 / (shifted * shifted)
    series = y * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * (5 / 66 - y * 691 / 2730)))))
    return (1 + 0.5 / shifted + series) / shifted + math.fsum(1 / one**2 for one in below)


def tetragamma(x: float) -> float:
    """The third derivative of log Γ at ``x`` > 0: that of the series of ``trigamma``."""
    shifted, below = _shifted(x)
    y = 1 / (shifted * shifted)
    series = y * (1 / 2 - y * (1 / 6 - y * (1 / 6 - y * (3 / 10 - y * (5 / 6 - y * 691 / 210)))))
    return -y * (1 + 1 / shifted + series) - 2 * math.fsum(1 / one**3 for one in below)


def _shifted(x: float) -> tuple[float, Iterable[float]]:
    """``x`` plus as many whole numbers as make it large, and the places that were passed."""
    steps = max(0, math.ceil(_LARGE - x))
    return x + steps, [x + step for step in range(steps)]


def _continued(numerator: Callable[[int], float], denominator: Callable[[int], float]) -> float:
    """b₀ + a₁/(b₁ + a₂/(b₂ + …)) by Lentz's method (Thompson and Barnett 1986)."""
    value = upper = denominator(0) or _SMALLEST
    lower = 0.0
    for n in range(1, _MOST_TERMS):
        a, b = numerator(n), denominator(n)
        lower = 1 / ((b + a * lower) or _SMALLEST)
        upper = (b + a / upper) or _SMALLEST
        change = upper * lower
        value *= change
        if abs(change - 1) <= 2 * _PRECISION:
            break
    return value


def _rising(function: Callable[[float], float], value: float) -> float:
    """Where between 0 and 1 a rising ``function`` reaches ``value``, by halving; precise near 0 too."""
    low, high = 0.0, 1.0
    while high - low > 2 * _PRECISION * high:
        middle = (low + high) / 2
        if middle in (low, high) or high < _SMALLEST:
            break
        if function(middle) < value:
            low = middle
        else:
            high = middle
    return (low + high) / 2

"""Evidence against an effect from differences within blocks, by their signs.

Had the two treatments of a block been exchanged, a setting that does nothing would have given the same difference
with the other sign. Which of the two it was is a fair coin, thrown anew for each block: given how large the differences
are, their signs are independent, whatever drift, period, bursts and changing spread made them so large. Of such signs
E[exp(λx) / cosh(λx)] = 1 for every λ, so the product over blocks is a test martingale (de la Peña 1999, "A general
class of exponential inequalities for martingales and ratios", Annals of Probability 27), and so is a mixture over λ. By
Ville's inequality it exceeds 1/α at any time with probability at most α. The effects that it does not refute are a
confidence sequence (Howard, Ramdas, McAuliffe and Sekhon 2021, "Time-uniform, nonparametric, nonasymptotic confidence
sequences", Annals of Statistics 49).

A few far differences make the others small beside the root mean square. A third of the bets therefore take differences
beyond the lower quartile of sizes for their sign alone, as sign tests do: any odd function of a difference will do,
and that quartile does not depend on signs.

Where blocks are seeds instead, no coin is thrown: the differences are draws from all seeds, and the same evidence is
about their mean as far as so few of them show it (see ``blind_spot``). Signs alone would be about their median.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste_stats.confidence_sequences import Interval, interval_between

Floats = NDArray[np.float64]
Against = Callable[[Floats], Floats]
"""The log of the evidence against each of some effects."""

FARTHEST: Final = 10
"""An interval reaches at most 4 to this power times as far as the farthest difference."""

PRECISION: Final = 1e-9
"""Precision of a bound, as a share of its distance from the estimate."""

_POINTS: Final = 9
_ROUNDS: Final = 40

FEWEST_IN_TIME: Final = 6
"""Fewer blocks do not show whether neighbours resemble each other."""

ALIKE: Final = 1.645
"""Limit in standard errors of a correlation: white noise exceeds it in one of 20 cases. A limit of 1 takes 7 % more
blocks of white noise, and sees no state of few blocks in time either (``benchmarks.verdicts.traps``)."""

MOST_ALIKE: Final = 0.98


@dataclass(frozen=True)
class Mixture:
    """The λ of the evidence with their weights, which add up to 1; each has both signs.

    The best λ is about the effect in standard deviations of a difference. From 4 on every sign counts fully. The share
    ``clipped`` of all bets takes values beyond their lower quartile for their sign.
    """

    slopes: Floats
    weights: Floats
    clipped: float = 0.0


LONG: Final = Mixture(np.geomspace(0.06, 4.0, 8), np.full(8, 1 / 8))
"""The mixture for experiments of up to several thousand blocks."""
SHORT: Final = Mixture(
    np.array([0.12, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0]),
    np.array([0.02, 0.03, 0.07, 0.11, 0.15, 0.27, 0.1, 0.25]),
    clipped=1 / 3,
)
"""The mixture for 6 to 60 blocks: six signs alike decide at 5 %, as the sign test would. On normal noise of known
spread as narrow as the normal mixture of ``confidence_sequences`` (measured in Ajuste's ``benchmarks.verdicts``)."""
PLAIN: Final = replace(SHORT, clipped=0.0)
"""The same for seeds, and for counts, whose differences are skew: signs alone would be about their median."""


def standardised(values: Floats, floor: float = 0.0) -> Floats:
    """Return ``values`` over the root mean square up to each, at least ``floor``, which does not depend on signs."""
    count = np.arange(1, values.shape[-1] + 1)
    scale = np.maximum(np.sqrt(np.cumsum(values**2, axis=-1) / count), floor)
    return np.divide(values, scale, out=np.zeros_like(values), where=scale > 0)


def clipped(values: Floats, floor: float = 0.0) -> Floats:
    """Return ``values`` over the lower quartile of the sizes up to each, at least ``floor``, and at most 1 in size."""
    sizes = np.abs(values)
    quartiles = np.empty_like(sizes)
    for row, known in zip(sizes.reshape(-1, sizes.shape[-1]), quartiles.reshape(-1, sizes.shape[-1]), strict=True):
        ordered: list[float] = []
        for place, size in enumerate(row.tolist()):
            insort(ordered, size)
            known[place] = ordered[place // 4]
    scale = np.maximum(quartiles, floor)
    return np.clip(np.divide(values, scale, out=np.sign(values), where=scale > 0), -1, 1)


def _bets(values: Floats, floor: float, mixture: Mixture) -> list[tuple[Floats, Floats, Floats]]:
    # Return slopes and log weights with the values that they bet on.
    plain = (mixture.slopes, np.log(mixture.weights * (1 - mixture.clipped)), standardised(values, floor))
    if not mixture.clipped:
        return [plain]
    return [plain, (mixture.slopes, np.log(mixture.weights * mixture.clipped), clipped(values, floor))]


def log_evidence(values: Floats, floor: float = 0.0, mixture: Mixture = LONG, side: int = 0) -> Floats:
    """Return the log of the evidence against symmetry around zero after each of ``values``, along the last axis.

    With ``side`` 1 only that they are too high counts, with −1 too low.
    """
    total: Floats | None = None
    for slopes, weights, x in _bets(values, floor, mixture):
        for slope, weight in zip(slopes, weights, strict=True):
            z = slope * x
            even = math.log(2) - np.abs(z) - np.log1p(np.exp(-2 * np.abs(z)))
            if side:
                bet = np.cumsum(even + side * z, axis=-1) + weight
            else:
                bet = np.logaddexp(np.cumsum(z + even, axis=-1), np.cumsum(even - z, axis=-1)) + weight - math.log(2)
            total = bet if total is None else np.logaddexp(total, bet)
    return np.asarray(total)


def final_log_evidence(values: Floats, floor: float = 0.0, mixture: Mixture = LONG, side: int = 0) -> Floats:
    """Return ``log_evidence`` after the last of ``values`` only."""
    terms = []
    for slopes, weights, x in _bets(values, floor, mixture):
        z = slopes[:, None] * x[..., None, :]
        size = np.abs(z)
        even = values.shape[-1] * math.log(2) - np.sum(size + np.log1p(np.exp(-2 * size)), axis=-1)
        odd = np.sum(z, axis=-1)
        both = even + side * odd if side else np.logaddexp(even + odd, even - odd) - math.log(2)
        terms.append(both + weights)
    return np.asarray(np.logaddexp.reduce(np.concatenate(terms, axis=-1), axis=-1))


@lru_cache(maxsize=256)
def fewest_blocks(alpha: float, mixture: str = "short") -> int:
    """Return the smallest number of blocks that can refute anything; ``mixture`` is ``short`` or ``long``."""
    n, mix = 1, LONG if mixture == "long" else SHORT
    while log_evidence(np.ones(n), mixture=mix)[-1] < -math.log(alpha):
        n += 1
    return n


def wider_in_time(differences: Floats) -> Floats:
    """Return the factor by which an interval must widen, along the last axis, because neighbouring blocks are alike.

    Differences of neighbouring blocks resemble each other more than by chance where a treatment has a state that
    lasts over blocks; 1 where they do not. Bayley and Hammersley 1946, "The effective number of independent
    observations in an autocorrelated time series", Supplement to the Journal of the Royal Statistical Society 8, for a
    first-order autoregression.
    """
    count = differences.shape[-1]
    away = differences - np.mean(differences, axis=-1, keepdims=True)
    squares = np.sum(away**2, axis=-1)
    if count < FEWEST_IN_TIME:
        return np.ones_like(squares)
    products = np.sum(away[..., 1:] * away[..., :-1], axis=-1)
    # Without cause it is -1/n on average, with variance 1/n.
    alike = np.divide(products, squares, out=np.zeros_like(squares), where=squares > 0) + 1 / count
    # With cause it is too small by (1 + 4r)/n on average (Marriott and Pope 1954, Biometrika 41).
    unbiased = np.minimum(alike + 4 * alike / count, MOST_ALIKE)
    believed = np.where((alike * math.sqrt(count) > ALIKE) & (squares > 0), unbiased, 0.0)
    return np.asarray(np.sqrt((1 + believed) / (1 - believed)))


def blind_spot(blocks: int, confidence: float) -> float:
    """Return the largest share of all trials that so many blocks may have missed altogether.

    What happens in a larger share is in at least one block with that ``confidence`` (Hanley and Lippman-Hand 1983, "If
    nothing goes wrong, is everything all right?", JAMA 249).
    """
    return float(1 - (1 - confidence) ** (1 / blocks)) if blocks else 1.0


def sign_interval(differences: Floats, *, alpha: float, floor: float = 0.0, mixture: Mixture = SHORT) -> Interval:
    """Return the effects that ``differences`` (at least one) do not refute; valid at all numbers of blocks together.

    ``floor`` is the least variance of a difference that is believed, from the resolution of the figures.
    """
    least = math.sqrt(floor)
    mean, variance = float(np.mean(differences)), max(float(np.var(differences)), floor)
    if len(differences) < fewest_blocks(alpha):
        return interval_between(len(differences), mean, -math.inf, math.inf, variance)
    against = partial(_evidence_against, differences, least, mixture, 0)
    return interval_around(differences, mean, against, alpha=alpha, floor=least)


def each_side(
    interval: Interval, differences: Floats, *, alpha: float, floor: float = 0.0, mixture: Mixture = SHORT
) -> Interval:
    """Return the ``sign_interval`` of ``differences`` with bounds of the error rate ``alpha`` each.

    Of the claims that an effect is less than something and that it is more, only one can be wrong: both may have all
    of the error rate.
    """
    least, middle, threshold = math.sqrt(floor), interval.mean, -math.log(alpha)
    reach = max(float(np.max(np.abs(differences - middle))), least)

    def bound(wide: float, side: int) -> float:
        against = partial(_evidence_against, differences, least, mixture, side)
        if math.isinf(wide) or against(np.array([middle]))[0] >= threshold:
            return wide
        return _bound(middle, -side * reach, against, threshold)

    return interval_between(interval.n, middle, bound(interval.low, 1), bound(interval.high, -1), interval.variance)


def _evidence_against(differences: Floats, floor: float, mixture: Mixture, side: int, effects: Floats) -> Floats:
    return final_log_evidence(differences - effects[:, None], floor, mixture, side)


def interval_around(differences: Floats, estimate: float, against: Against, *, alpha: float, floor: float) -> Interval:
    """Return the effects around ``estimate`` not refuted ``against`` at ``alpha``; unbounded if all are refuted."""
    threshold, count = -math.log(alpha), len(differences)
    variance = max(float(np.var(differences)), floor**2)
    middle = estimate
    if against(np.array([middle]))[0] >= threshold:
        candidates = np.quantile(differences, np.linspace(0, 1, 33))
        evidence = against(candidates)
        middle = float(candidates[np.argmin(evidence)])
        if np.min(evidence) >= threshold:
            return interval_between(count, float(np.mean(differences)), -math.inf, math.inf, variance)
    reach = max(float(np.max(np.abs(differences - middle))), floor)
    low, high = (_bound(middle, side * reach, against, threshold) for side in (-1, 1))
    return interval_between(count, middle, low, high, variance)


def _bound(middle: float, reach: float, against: Against, threshold: float) -> float:
    # Return the nearest refuted effect from `middle` in the direction of `reach`; infinite where none is.
    #
    # Bracketed twice, and then narrowed by the rule of false position (Dowell and Jarratt 1971, "A modified regula
    # falsi method for computing the root of an equation", BIT 11). What is returned is refuted.
    steps = np.r_[0.0, 4.0 ** np.arange(FARTHEST)]
    for _ in range(2):
        excess = against(middle + steps * reach) - threshold
        refuted = np.flatnonzero(excess[1:] >= 0)
        if not len(refuted) or reach == 0:
            return math.copysign(math.inf, reach)
        near, far = float(steps[refuted[0]]), float(steps[refuted[0] + 1])
        below, above = float(excess[refuted[0]]), float(excess[refuted[0] + 1])
        steps = np.linspace(near, far, _POINTS)
    last = 0
    for _ in range(_ROUNDS):
        if far - near <= PRECISION * far:
            break
        at = (near * above - far * below) / (above - below)
        value = float(against(np.array([middle + at * reach]))[0]) - threshold
        if value >= 0:
            far, above, below = at, value, below / 2 if last > 0 else below
            last = 1
        else:
            near, below, above = at, value, above / 2 if last < 0 else above
            last = -1
    return middle + far * reach

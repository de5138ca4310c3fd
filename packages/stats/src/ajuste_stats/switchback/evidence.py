"""Evidence against an effect on a live system: ``sign_intervals`` of the blocks of a switchback, with a control."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy
from numpy.typing import NDArray

from ajuste_stats.confidence_sequences import Interval
from ajuste_stats.sign_intervals import LONG, Floats, Mixture, fewest_blocks, final_log_evidence, interval_around
from ajuste_stats.switchback.slices import BlockDifferences

TURNS: Final = 0.1
"""The error rate, at each look, of an effect that changes sign when its treatment stays."""

MOST_VARIANCE: Final = 20.0

# Fewer blocks after the same or after the other treatment tell nothing of a carry-over.
_EACH: Final = 2

EXPLAINS: Final = 0.9
"""Below this share of the remaining variance the estimate is that at equal load."""

MOST: Final = 20_000
"""Beyond this many blocks a prediction is not worth giving."""

FEWEST: Final = 4
"""Fewer differences say nothing of their spread."""

CARRIES: Final = 0.01
"""The error rate of a carry-over, at each look."""

FEWEST_BLOCKS: Final = 20

SURE: Final = 3.0
"""Number of standard errors from nothing that count as a change of the effect."""


@dataclass(frozen=True)
class CarryOver:
    """The difference of a slice after one of the other treatment from one after the baseline.

    ``size`` is on the scale of the differences, with its standard error and degrees of freedom. ``known`` is False
    where too few blocks follow each. ``settled`` is the effect of slices that follow their own treatment, with its
    standard error and its variance as a multiple of that of the mean of differences.
    """

    size: float
    error: float
    freedom: int
    settled: float = 0.0
    settled_error: float = math.inf
    settled_variance: float = math.inf

    @property
    def known(self) -> bool:
        return self.freedom > 0

    @property
    def p_value(self) -> float:
        """Return the two-sided p-value of no carry-over; 1 where unknown."""
        if not self.known:
            return 1.0
        if self.error == 0:
            return 0.0 if self.size else 1.0
        return float(2 * scipy.special.stdtr(self.freedom, -abs(self.size) / self.error))

    def settles(self, effect: float) -> bool:
        """Return whether the settled effect has the sign of ``effect`` at an error rate of ``TURNS``."""
        return (
            math.copysign(1.0, effect) * self.settled
            > float(scipy.special.stdtrit(self.freedom, 1 - TURNS)) * self.settled_error
        )

    @property
    def shows_settled(self) -> bool:
        """Return whether the order can show that: squares and mirrored blocks hardly vary what a slice follows."""
        return self.settled_variance <= MOST_VARIANCE

    @property
    def times_as_many(self) -> float:
        """Return about how many times as many blocks show that."""
        return (float(scipy.special.stdtrit(self.freedom, 1 - TURNS)) * self.settled_error / self.settled) ** 2


def carry_over(differences: BlockDifferences, control: Floats | None) -> CarryOver:
    """Estimate what the treatment of a slice does to the next; with a ``control``, at equal load.

    Which of the two came before is drawn at random, too: differences of blocks are regressed on it (two-period
    crossover designs; Grizzle 1965, "The two-period change-over design and its use in clinical trials", Biometrics 21).
    """
    known = ~np.isnan(differences.follows)
    values, follows = differences.values[known], differences.follows[known]
    if control is not None and len(values) > 1 and float(np.ptp(control[known])) > 0:
        load = control[known] - np.mean(control[known])
        values = values - float(np.sum(load * values) / np.sum(load**2)) * control[known]
    if (
        len(values) < 2 * _EACH + 1
        or np.sum(follows == follows.min()) < _EACH
        or np.sum(follows > follows.min()) < _EACH
    ):
        return CarryOver(0.0, math.inf, 0)
    away = follows - np.mean(follows)
    size = float(np.sum(away * values) / np.sum(away**2))
    left = values - np.mean(values) - size * away
    freedom = len(values) - 2
    variance, squares, beyond = float(np.sum(left**2)) / freedom, float(np.sum(away**2)), 1 - float(np.mean(follows))
    return CarryOver(
        size=size,
        error=math.sqrt(variance / squares),
        freedom=freedom,
        settled=float(np.mean(values)) + beyond * size,
        settled_error=math.sqrt(variance * (1 / len(values) + beyond**2 / squares)),
        settled_variance=1 + beyond**2 / (squares / len(values)),
    )


def adjusted(values: Floats, control: Floats) -> Floats:
    """Return ``values`` without what differences of a ``control`` explain, along the last axis.

    They are recursive residuals (Brown, Durbin and Evans 1975, "Techniques for testing the constancy of regression
    relationships over time", JRSS B 37). The slope of each is from those before it alone, and each is divided by how
    much the error of that slope widens it. Neither depends on signs, so these stay independent. The first has no slope
    yet and says nothing.
    """
    both, squares = _before(values * control), _before(control**2)
    known = squares > 0
    slope = np.divide(both, squares, out=np.zeros_like(both), where=known)
    leverage = np.divide(control**2, squares, out=np.zeros_like(squares), where=known)
    left = (values - slope * control) / np.sqrt(1 + leverage)
    return np.where(known | (control == 0), left, 0.0)


def _before(terms: Floats) -> Floats:
    return np.asarray(np.cumsum(terms, axis=-1) - terms)


def sequence_interval(
    differences: Floats,
    *,
    alpha: float,
    floor: float = 0.0,
    control: Floats | None = None,
    mixture: Mixture = LONG,
) -> Interval:
    """Return the effects that ``differences`` (at least one) do not refute; valid at all numbers of blocks together.

    With a ``control`` the evidence is the mean of that with and without the adjustment for it.
    """

    def against(effects: Floats) -> Floats:
        left = differences[None, :] - effects[:, None]
        plain = final_log_evidence(left, floor, mixture)
        if control is None:
            return plain
        also = final_log_evidence(adjusted(left, np.broadcast_to(control, left.shape)), floor, mixture)
        return np.asarray(np.logaddexp(plain, also) - math.log(2))

    return interval_around(differences, _estimate(differences, control), against, alpha=alpha, floor=floor)


def _estimate(differences: Floats, control: Floats | None) -> float:
    mean = float(np.mean(differences))
    if control is not None and len(differences) > 2 and float(np.sum(control**2)) > 0:
        away, load = differences - mean, control - np.mean(control)
        slope = float(np.sum(away * load) / np.sum(load**2)) if np.ptp(control) > 0 else 0.0
        if np.var(away - slope * load) < EXPLAINS * np.var(away):
            mean -= slope * float(np.mean(control))
    return mean


def blocks_needed(noise: Floats, effect: float, alpha: float, *, shortfall: float = 0.0) -> int | None:
    """Return about how many blocks refute no effect; ``None`` beyond ``MOST``.

    Differences within blocks are taken as ``effect`` plus one of ``noise`` with either sign, the evidence of n blocks
    as normal. ``shortfall`` says how many standard deviations below its mean it may be: 0 for half of all experiments,
    1.645 for 95 of 100.
    """
    if len(noise) < FEWEST or effect == 0:
        return None
    values = np.concatenate([noise, -noise]) + effect
    z = LONG.slopes[:, None] * values / math.sqrt(float(np.mean(values**2)))
    gains = z - np.abs(z) - np.log1p(np.exp(-2 * np.abs(z))) + math.log(2)
    mean, sd = gains.mean(axis=1), gains.std(axis=1)
    threshold = math.log(2 * len(LONG.slopes)) - math.log(alpha)

    def enough(n: int) -> bool:
        return bool(np.logaddexp.reduce(n * mean - shortfall * math.sqrt(n) * sd) >= threshold)

    low, high = 0, fewest_blocks(alpha, "long")
    while not enough(high):
        if high >= MOST:
            return None
        low, high = high, min(2 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return max(high, fewest_blocks(alpha, "long"))


def changes_over_time(differences: NDArray[np.float64]) -> bool:
    """Return whether the effect itself changes: whether differences of neighbouring blocks resemble each other.

    Under one and the same effect their signs around it are independent, so the products of neighbours add up to
    nothing, with the sum of their squares as variance, whatever the noise is.
    """
    if len(differences) < FEWEST_BLOCKS:
        return False
    away = differences - np.mean(differences)
    products = away[1:] * away[:-1]
    return float(np.sum(products)) > SURE * float(np.sqrt(np.sum(products**2)))

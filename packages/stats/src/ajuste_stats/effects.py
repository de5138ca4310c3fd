"""Effects: how a treatment differs from the baseline within the same blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import scipy
from numpy.typing import NDArray

from ajuste_stats.confidence_sequences import Interval, interval_between, mean_interval, quantile_bounds
from ajuste_stats.fixed_samples import moments
from ajuste_stats.outliers import distances_from_median, far_places
from ajuste_stats.pairs import Pairs
from ajuste_stats.rare_counts import RateRatio, are_rare, rate_ratio
from ajuste_stats.rounding import figure_step, figure_steps, is_count, log_rounding_error, rounding_error
from ajuste_stats.sign_intervals import PLAIN, SHORT, each_side, sign_interval, wider_in_time
from ajuste_stats.terms import Quantity, Scale

Array = NDArray[np.float64]

TAILS: Final = (0.95, 0.99)

SHARED: Final = 0.5
"""The correlation of both within blocks above which spreads do not tell which of the two has far trials."""

ENDING: Final = 0.1
"""The share of figures at one end from which on they seem to end there; fewer hide little of a mean."""

FEWEST_OTHERS: Final = 3
"""Fewer figures that differ may do so by chance where figures are coarse."""

LASTING: Final = 2.0
"""Blocks for each independent one from which a state that lasts is worth a word; noise seldom looks like that."""

CARRIES: Final = 0.01
"""The error rate, at each look, of a carry-over. Where there is none, it would have to reverse the effect, too."""

UNLIKE: Final = 2.0
"""The ratio of two standard deviations above which noise counts as of different shape."""

ALSO: Final = 0.2
"""Then the normal mixture must refute an effect, too, at this share of the error rate."""


@dataclass(frozen=True)
class Tail:
    """The ``quantile`` of the trials of the baseline and of the other treatment."""

    quantile: float
    baseline: float
    other: float


def natural(value: float, scale: Scale) -> float | None:
    """Return a point of an interval as a ratio or a difference; ``None`` where it is not finite."""
    if not math.isfinite(value):
        return None
    if scale == "difference":
        return value
    return math.exp(value) if value < 700 else None


@dataclass(frozen=True)
class Effect:
    """The effect of a treatment, with an ``interval`` of the mean log ratio or difference, as ``scale`` says.

    Differences, ``baseline_mean`` and ``step``, that of the figures, are in its unit. ``fell_back``: ratios were
    wanted but a value is not positive. ``same``: every pair has twice the same value. ``same_order``: the same of the
    two ran first in every block, so that there is no interval yet. ``of_seeds``: blocks differ by seed only, as under
    the virtual clock. ``seen`` is how many trials of each show what happens seldom; ``None`` where
    that is not asked. ``baseline_level`` is the baseline's mean on the scale of the interval: a geometric one of
    ratios. ``mean_ratio`` is the log of the ratio of arithmetic means, where ratios are compared. ``wider`` is the
    factor for neighbouring blocks that resemble each other. ``rounding`` is how far the steps of the figures may have
    moved the estimate, on the scale of the interval, which includes it. ``rates`` bounds the ratio of rates where some
    trials have none of what is counted. ``each_side`` has bounds of the full error rate each, for claims of which one
    can be wrong at most. ``settled`` is the effect where each follows itself, if a trial changes the one after it for
    certain. ``trials`` are the values of both.
    """

    scale: Scale
    interval: Interval
    baseline_mean: float
    step: float
    same: bool = False
    fell_back: bool = False
    same_order: bool = False
    of_seeds: bool = False
    seen: int | None = None
    baseline_level: float | None = None
    mean_ratio: float | None = None
    wider: float = 1.0
    rounding: float = 0.0
    rates: RateRatio | None = None
    each_side: Interval | None = None
    settled: float | None = None
    trials: tuple[Array, Array] | None = field(default=None, compare=False, repr=False)

    def natural(self, value: float) -> float | None:
        """Return a point of the interval as a ratio or a difference; ``None`` where it is not finite."""
        return natural(value, self.scale)

    @property
    def estimate(self) -> float | None:
        """Return the estimated ratio or difference; ``None`` where it is not finite."""
        return self.natural(self.interval.mean)

    @property
    def level(self) -> float | None:
        """Return the baseline's level changed by the estimate."""
        if self.baseline_level is None or self.estimate is None:
            return None
        return self.baseline_level * self.estimate if self.scale == "ratio" else self.baseline_level + self.estimate

    @property
    def averages_disagree(self) -> bool:
        """Return whether arithmetic means change in the other direction than typical trials."""
        return self.mean_ratio is not None and self.mean_ratio * self.interval.mean < 0

    @cached_property
    def differences(self) -> Array | None:
        """Return the differences of pairs as shares of the baseline's mean, or in the unit; their mean is a mean's.

        A ratio of means is 1 more than their mean; ``None`` where the trials are in no pairs.
        """
        if self.seen is None or self.trials is None or len(self.trials[0]) != len(self.trials[1]):
            return None
        baseline, other = self.trials
        return (other - baseline) / (float(np.mean(baseline)) if self.scale == "ratio" else 1.0)

    @property
    def independent(self) -> int:
        """Return about how many independent blocks carry as much information."""
        return max(1, round(self.interval.n / self.wider**2))

    @property
    def is_lasting(self) -> bool:
        """Return whether neighbouring blocks resemble each other so much that they count half at most."""
        return self.wider**2 >= LASTING

    def on_scale(self, share: float) -> float:
        """Return a mean of ``differences`` on the scale of the interval."""
        if self.scale == "difference":
            return share
        return math.log1p(share) if share > -1 else -math.inf

    @cached_property
    def ends_at(self) -> float | None:
        """Return the largest or smallest figure where figures seem to end at it: what lies beyond is unknown.

        At least ``ENDING`` of the figures of each are exactly that, and the others all differ. Emulated time is exact:
        the best of all seeds may well come often.
        """
        if self.trials is None or self.same or self.of_seeds:
            return None
        both = np.concatenate(self.trials)
        for end in (float(np.max(both)), float(np.min(both))):
            others = both[both != end]
            if len(others) < FEWEST_OTHERS or len(np.unique(others)) < len(others):
                continue
            if all(np.mean(side == end) >= ENDING for side in self.trials):
                return end
        return None

    @cached_property
    def mean_range(self) -> tuple[float, float]:
        """Return the mean change if the farthest trial on either side had come twice, on the scale of the interval.

        What was seen once in n trials happens in at most 5 of n by chance 5 %; without it the mean of few is too sure.
        """
        values = self.differences
        if values is None:
            mean = self.mean_ratio if self.mean_ratio is not None else self.interval.mean
            return mean, mean
        return tuple(self.on_scale(float(_twice(values, far).mean())) for far in (np.min, np.max))  # type: ignore[return-value]

    @property
    def typical(self) -> float:
        """Return the median change on the scale of the interval."""
        if self.differences is None or self.trials is None:
            return self.interval.mean
        baseline, other = (np.log(side) if self.scale == "ratio" else side for side in self.trials)
        return float(np.median(other - baseline))

    @property
    def share_noise(self) -> bool:
        """Return whether blocks vary so much that the noise of each of the two alone does not show."""
        if self.trials is None or min(map(np.ptp, self.trials)) == 0:
            return False
        sides = [np.log(side) if self.scale == "ratio" else side for side in self.trials]
        return float(np.corrcoef(sides)[0, 1]) > SHARED

    def means_oppose(self, alpha: float) -> bool:
        """Return whether rare trials may cost more than typical ones save.

        That is asked where one of the two varies more than ``UNLIKE`` times as much and its far trials lie on the other
        side of the effect; where blocks hide which one varies, if they lie ``UNLIKE`` times as far as on the same side.
        Then the mean change must be on the side of the typical one by a one-sided t test, with the farthest trial taken
        twice.
        """
        values = self.differences
        if values is None or self.trials is None or len(values) < 2:
            return False
        values = values if self.interval.mean < 0 else -values
        middle = float(np.median(values))
        less, more = sorted(float(np.std(np.log(side) if self.scale == "ratio" else side)) for side in self.trials)
        unlike = more > UNLIKE * less
        if not (unlike or self.share_noise):
            return False
        times = 1.0 if unlike else UNLIKE
        if float(np.max(values)) - middle <= times * (middle - float(np.min(values))):
            return False
        values = _twice(values, np.max)
        mean, error, n = moments(values)
        return mean + error * float(scipy.special.stdtrit(n - 1, 1 - alpha)) >= 0

    @property
    def tails(self) -> tuple[Tail, ...]:
        """Return high quantiles of both, as far as both have values beyond."""
        if self.trials is None:
            return ()
        n = min(map(len, self.trials))
        quantiles = [quantile for quantile in TAILS if n >= round(1 / (1 - quantile))]
        return tuple(
            Tail(quantile, *(float(np.quantile(side, quantile)) for side in self.trials)) for quantile in quantiles
        )

    @property
    def low(self) -> float | None:
        """Return the lower bound as a ratio or a difference; ``None`` where there is none."""
        return self.natural(self.interval.low)

    @property
    def high(self) -> float | None:
        """Return the upper bound as a ratio or a difference; ``None`` where there is none."""
        return self.natural(self.interval.high)


def _twice(values: Array, far: Callable[[Array], Any]) -> Array:
    return np.append(values, far(values))


def effect(pairs: Pairs, quantity: Quantity, alpha: float) -> Effect | None:
    """Return the effect in ``pairs`` with its anytime-valid interval of error rate ``alpha``; ``None`` without pairs.

    The estimate of a ratio is the geometric mean of the ratios within the blocks. The interval rests on the signs of
    the differences (see ``sign_intervals``), and is wider where those of neighbouring blocks resemble each
    other; seeds have no neighbours. The variance has a floor: a figure of resolution r carries a rounding error of
    variance r²/12 (Sheppard), each of the two of a pair. While the same of the two ran first in every block the
    interval is unbounded: a drift would look just like an effect. Where figures are rounded to steps that their noise
    does not cross, the interval is wider by what that may hide (see ``rounding``).
    """
    if not len(pairs):
        return None
    if quantity.quantile is not None:
        return _quantile_effect(pairs, quantity, quantity.quantile, alpha)
    baseline_mean = float(np.mean(pairs.baseline))
    other_mean = float(np.mean(pairs.other))
    same = bool(np.all(pairs.baseline == pairs.other))
    positive = bool(np.all(pairs.baseline > 0) and np.all(pairs.other > 0))
    steps = figure_steps(quantity, pairs.baseline, pairs.other)
    as_ratio = quantity.scale == "ratio" and positive
    if as_ratio:
        floor = ((steps[0] / baseline_mean) ** 2 + (steps[1] / other_mean) ** 2) / 12
        baseline, changed = np.log(pairs.baseline), np.log(pairs.other)
    else:
        floor, baseline, changed = (steps[0] ** 2 + steps[1] ** 2) / 12, pairs.baseline, pairs.other
    of_seeds = pairs.baseline_first is None
    wider = 1.0 if of_seeds else float(wider_in_time(changed - baseline))
    below, above = _rounded(pairs, quantity, steps, as_ratio=as_ratio)

    def widened(interval: Interval) -> Interval:
        low, high = (interval.mean + wider * (bound - interval.mean) for bound in (interval.low, interval.high))
        low, high = (-math.inf, math.inf) if pairs.same_order else (low - below, high + above)
        return interval_between(interval.n, interval.mean, low, high, wider**2 * interval.variance)

    interval, sides = map(widened, _intervals(baseline, changed, alpha, floor, as_ratio=as_ratio, of_seeds=of_seeds))
    return Effect(
        scale="ratio" if as_ratio else "difference",
        interval=interval,
        each_side=sides,
        baseline_mean=baseline_mean,
        baseline_level=math.exp(float(np.mean(np.log(pairs.baseline)))) if as_ratio else baseline_mean,
        mean_ratio=math.log(other_mean / baseline_mean) if as_ratio else None,
        of_seeds=of_seeds,
        seen=len(pairs) * pairs.each,
        step=max(steps),
        same=same,
        fell_back=quantity.scale == "ratio" and not as_ratio,
        same_order=pairs.same_order,
        wider=wider,
        rounding=max(below, above),
        rates=None
        if as_ratio or not are_rare(pairs.baseline, pairs.other)
        else rate_ratio(pairs.baseline, pairs.other, alpha),
        settled=None if pairs.baseline_first is None else settled_effect(changed - baseline, pairs.baseline_first),
        trials=(pairs.baseline, pairs.other),
    )


def settled_effect(differences: Array, baseline_first: NDArray[np.bool_]) -> float | None:
    """Return the effect where each treatment follows itself; ``None`` unless trials change those after them.

    What ran before the first of a block is random, as is the order within: differences are regressed on both (crossover
    designs: Grizzle 1965, "The two-period change-over design and its use in clinical trials", Biometrics 21).
    """
    first, values = baseline_first[1:], differences[1:]
    # The other one ended the block before if the baseline began it. Its second trial follows the first.
    other_before = baseline_first[:-1]
    follows = np.where(first, 0.0 - other_before, other_before - 1.0)
    table = np.column_stack([np.ones(len(values)), follows, first])
    freedom = len(values) - 3
    if freedom < 2 or np.linalg.matrix_rank(table) < 3:
        return None
    size = np.linalg.lstsq(table, values)[0]
    variance = float(np.sum((values - table @ size) ** 2)) / freedom
    error = math.sqrt(variance * float(np.linalg.inv(table.T @ table)[1, 1]))
    if abs(size[1]) <= error * float(scipy.special.stdtrit(freedom, 1 - CARRIES / 2)):
        return None
    return float(np.mean(values) + size[1] * (1 - np.mean(follows)))


def _rounded(pairs: Pairs, quantity: Quantity, steps: tuple[float, float], *, as_ratio: bool) -> tuple[float, float]:
    # How far below and above the estimate rounding may have hidden the true one.
    if is_count(quantity, np.concatenate([pairs.baseline, pairs.other])):
        return 0.0, 0.0
    if not as_ratio:
        error = rounding_error(pairs.baseline, steps[0]) + rounding_error(pairs.other, steps[1])
        return error, error
    (base_below, base_above), (below, above) = map(log_rounding_error, (pairs.baseline, pairs.other), steps)
    return below + base_above, above + base_below


def _intervals(
    baseline: Array, other: Array, alpha: float, floor: float, *, as_ratio: bool, of_seeds: bool
) -> tuple[Interval, Interval]:
    # By signs, of both sides together and of each; where only one of the two has long delays, also as wide as by the
    # normal mixture.
    #
    # Exchanged, such two would not have given the same difference with the other sign. So it is where a few seeds
    # differ by far more than the others: no coin has chosen their sign, and most signs are those of the others.
    differences, mixture = other - baseline, SHORT if as_ratio and not of_seeds else PLAIN
    interval = sign_interval(differences, alpha=alpha, floor=floor, mixture=mixture)
    sides = interval, each_side(interval, differences, alpha=alpha, floor=floor, mixture=mixture)
    less, more = sorted((float(np.std(baseline)), float(np.std(other))))
    unlike = more > UNLIKE * max(less, math.sqrt(floor / 2))
    far = of_seeds and bool(far_places(distances_from_median(differences)))
    if not (unlike or far) or math.isinf(interval.half_width):
        return sides
    normal = mean_interval(differences, alpha=ALSO * alpha if unlike else alpha, floor=floor)
    both, each = (
        interval_between(side.n, side.mean, min(side.low, normal.low), max(side.high, normal.high), side.variance)
        for side in sides
    )
    return both, each


def _quantile_effect(pairs: Pairs, quantity: Quantity, quantile: float, alpha: float) -> Effect:
    # Return the ratio (or difference) of the two treatments' quantiles.
    #
    # Each has an interval of half the error rate, and where both hold, so does the one from the least to the largest
    # ratio (Bonferroni). Bounds are widened by half a step of the figure.
    step = figure_step(quantity, np.concatenate([pairs.baseline, pairs.other]))
    positive = bool(np.min(pairs.baseline) > step / 2 and np.min(pairs.other) > step / 2)
    as_ratio = quantity.scale == "ratio" and positive
    sides = []
    for values in (pairs.baseline, pairs.other):
        low, high = quantile_bounds(values, quantile, alpha / 2)
        bounds = (low - step / 2, float(np.quantile(values, quantile)), high + step / 2)
        sides.append([math.log(point) if point > 0 else -math.inf for point in bounds] if as_ratio else bounds)
    (low, middle, high), (other_low, other_middle, other_high) = sides
    unknown = pairs.same_order
    return Effect(
        scale="ratio" if as_ratio else "difference",
        interval=interval_between(
            len(pairs),
            other_middle - middle,
            -math.inf if unknown else other_low - high,
            math.inf if unknown else other_high - low,
        ),
        baseline_mean=float(np.quantile(pairs.baseline, quantile)),
        baseline_level=float(np.quantile(pairs.baseline, quantile)),
        of_seeds=pairs.baseline_first is None,
        seen=len(pairs) if pairs.baseline_first is None else None,
        step=step,
        same=bool(np.all(pairs.baseline == pairs.other)),
        fell_back=quantity.scale == "ratio" and not as_ratio,
        same_order=unknown,
    )


def margin(effect: Effect, smallest_effect: float) -> float:
    """Return the half width of the zone of equivalence around no effect, on the scale of ``effect.interval``.

    Ratios between 1/(1+δ) and 1+δ are equivalent, and differences within δ × the baseline's mean: of a baseline of 0
    nothing is.
    """
    if effect.scale == "ratio":
        return math.log1p(smallest_effect)
    return smallest_effect * abs(effect.baseline_mean)

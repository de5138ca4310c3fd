"""Evidence against an effect from differences within blocks whose order was drawn at random.

Had the two configurations of a block been exchanged, a setting that does nothing would have given the same difference
with the other sign. Which of the two it was is a fair coin, thrown anew for each block: given how large the differences
are, their signs are independent, whatever drift, autocorrelation, bursts and changing spread made them so large. Of
such signs E[exp(λx) / cosh(λx)] = 1 for every λ, so the product over blocks is a test martingale (de la Peña 1999, "A
general class of exponential inequalities for martingales and ratios", Annals of Probability 27), and so is a mixture
over λ. By Ville's inequality it exceeds 1/α at any time with probability at most α. The effects that it does not
refute are a confidence sequence (Howard, Ramdas, McAuliffe and Sekhon 2021, "Time-uniform, nonparametric,
nonasymptotic confidence sequences", Annals of Statistics 49).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.effects import SMALLEST_RELATIVE_STEP
from ajuste.analysis.sequence import Interval, interval_between
from ajuste.model.live import Slice
from ajuste.model.metric import Metric, Scale


@dataclass(frozen=True)
class BlockDifferences:
    """``values`` block by block: the mean under the other configuration minus that under the baseline, of logarithms
    where ``scale`` is ``ratio``. ``control`` has the same of the control figure, ``None`` where it is not known of
    every block. ``floor`` is the least standard deviation that is believed, from the resolution of the figures.
    """

    scale: Scale
    values: Floats
    control: Floats | None
    baseline_mean: float
    floor: float
    same: bool
    fell_back: bool


def block_differences(slices: Sequence[Slice], metric: Metric, baseline: str, other: str) -> BlockDifferences | None:
    """The differences of all blocks that have slices of both that count; ``None`` without any."""
    by_block: dict[int, tuple[list[Slice], list[Slice]]] = {}
    for one in sorted(slices, key=lambda one: one.number):
        if one.counts and one.configuration in (baseline, other):
            by_block.setdefault(one.block, ([], []))[one.configuration == other].append(one)
    blocks = [own for own in by_block.values() if all(own)]
    if not blocks:
        return None
    sides = [np.array([_value(one) for own in blocks for one in own[side]]) for side in (0, 1)]
    means = [float(np.mean(side)) for side in sides]
    positive = all(bool(np.all(side > 0)) for side in sides)
    as_ratio = metric.scale == "ratio" and positive
    step = metric.resolution or SMALLEST_RELATIVE_STEP * max(map(abs, means))
    relative = [1 / mean if as_ratio else 1.0 for mean in means]
    controls = [one.control for own in blocks for side in own for one in side]
    known = all(control is not None and np.isfinite(control) for control in controls)
    log_load = known and all(control is not None and control > 0 for control in controls)
    return BlockDifferences(
        scale="ratio" if as_ratio else "difference",
        values=_differences(blocks, _value, logarithm=as_ratio),
        control=_differences(blocks, _control, logarithm=log_load) if known else None,
        baseline_mean=means[0],
        floor=step * math.hypot(*relative) / math.sqrt(12),
        same=bool(np.all(_differences(blocks, _value, logarithm=False) == 0)),
        fell_back=metric.scale == "ratio" and not as_ratio,
    )


def _differences(
    blocks: Sequence[tuple[list[Slice], list[Slice]]], value: Callable[[Slice], float], *, logarithm: bool
) -> Floats:
    def mean(side: Sequence[Slice]) -> float:
        values = np.array([value(one) for one in side])
        return float(np.mean(np.log(values) if logarithm else values))

    return np.array([mean(others) - mean(ones) for ones, others in blocks])


def _value(one: Slice) -> float:
    return one.value if one.value is not None else float("nan")


def _control(one: Slice) -> float:
    return one.control if one.control is not None else float("nan")


Floats = NDArray[np.float64]
Against = Callable[[Floats], Floats]
"""The log of the evidence against each of some effects."""

SLOPES: Final = np.geomspace(0.06, 4.0, 8)
"""The λ of the mixture, each with both signs. The best one is about the effect in standard deviations of a difference:
0.06 for several thousand blocks, 4 where every sign counts fully."""

EXPLAINS: Final = 0.9
"""Below this share of the variance that is left, the estimate is that at equal load."""
HALVINGS: Final = 40
FARTHEST: Final = 1e6


def standardised(values: Floats, floor: float = 0.0) -> Floats:
    """``values`` (along the last axis) over the root mean square of all up to each. That does not depend on signs.

    ``floor`` is the least scale that is believed, from the resolution of the figures.
    """
    count = np.arange(1, values.shape[-1] + 1)
    scale = np.maximum(np.sqrt(np.cumsum(values**2, axis=-1) / count), floor)
    return np.divide(values, scale, out=np.zeros_like(values), where=scale > 0)


def log_evidence(values: Floats, floor: float = 0.0) -> Floats:
    """The log of the evidence against symmetry around zero after each of ``values``, along the last axis."""
    x = standardised(values, floor)
    terms = []
    for slope in SLOPES:
        z = slope * x
        even = -(np.abs(z) + np.log1p(np.exp(-2 * np.abs(z))) - math.log(2))
        terms += [np.cumsum(z + even, axis=-1), np.cumsum(even - z, axis=-1)]
    return np.asarray(np.logaddexp.reduce(terms, axis=0) - math.log(2 * len(SLOPES)))


def adjusted(values: Floats, control: Floats) -> Floats:
    """``values`` without what differences of a ``control`` explain, along the last axis: recursive residuals (Brown,
    Durbin and Evans 1975, "Techniques for testing the constancy of regression relationships over time", JRSS B 37).

    The slope of each is from the ones before it alone, and each is divided by how much the error of that slope widens
    it. Neither depends on signs, so these stay independent. The first has no slope yet and says nothing.
    """
    both, squares = _before(values * control), _before(control**2)
    known = squares > 0
    slope = np.divide(both, squares, out=np.zeros_like(both), where=known)
    leverage = np.divide(control**2, squares, out=np.zeros_like(squares), where=known)
    left = (values - slope * control) / np.sqrt(1 + leverage)
    return np.where(known | (control == 0), left, 0.0)


def _before(terms: Floats) -> Floats:
    """The sum of all before each, along the last axis."""
    return np.asarray(np.cumsum(terms, axis=-1) - terms)


def fewest_blocks(alpha: float) -> int:
    """The smallest number of blocks that can refute anything."""
    n = 1
    while log_evidence(np.ones(n))[-1] < -math.log(alpha):
        n += 1
    return n


def sequence_interval(
    differences: Floats, *, alpha: float, floor: float = 0.0, control: Floats | None = None
) -> Interval:
    """The effects that ``differences`` (at least one) do not refute; it holds at all numbers of blocks together.

    With a ``control`` the evidence is the mean of that with and without the adjustment for it.
    """
    threshold = -math.log(alpha)

    def against(effects: Floats) -> Floats:
        left = differences[None, :] - effects[:, None]
        plain = log_evidence(left, floor)[:, -1]
        if control is None:
            return plain
        also = log_evidence(adjusted(left, np.broadcast_to(control, left.shape)), floor)[:, -1]
        return np.asarray(np.logaddexp(plain, also) - math.log(2))

    middle = _middle(differences, control, against, threshold)
    if middle is None:
        return interval_between(len(differences), float(np.mean(differences)), -math.inf, math.inf)
    reach = max(float(np.max(np.abs(differences - middle))), floor)
    bounds = (_bound(middle, side * reach, against, threshold) for side in (-1, 1))
    return interval_between(len(differences), middle, *bounds)


def _middle(differences: Floats, control: Floats | None, against: Against, threshold: float) -> float | None:
    """The mean, at equal load if there is a control that explains much; ``None`` if every effect is refuted: then there
    is no single one.
    """
    mean = float(np.mean(differences))
    if control is not None and len(differences) > 2 and float(np.sum(control**2)) > 0:
        away, load = differences - mean, control - np.mean(control)
        slope = float(np.sum(away * load) / np.sum(load**2)) if np.ptp(control) > 0 else 0.0
        if np.var(away - slope * load) < EXPLAINS * np.var(away):
            mean -= slope * float(np.mean(control))
    candidates = np.r_[mean, np.quantile(differences, np.linspace(0, 1, 33))]
    found = against(candidates)
    best = 0 if found[0] < threshold else int(np.argmin(found))
    return float(candidates[best]) if found[best] < threshold else None


def _bound(middle: float, reach: float, against: Against, threshold: float) -> float:
    """The nearest refuted effect from ``middle`` in the direction of ``reach``; infinite where none is."""
    far = 1.0
    while against(np.array([middle + far * reach]))[0] < threshold:
        far *= 4
        if far > FARTHEST or reach == 0:
            return math.copysign(math.inf, reach)
    near = 0.0
    for _ in range(HALVINGS):
        half = (near + far) / 2
        if against(np.array([middle + half * reach]))[0] < threshold:
            near = half
        else:
            far = half
    return middle + far * reach


MOST: Final = 20_000
"""Beyond this many blocks a prediction is not worth giving."""
FEWEST: Final = 4
"""With fewer differences than this nothing is said of their spread."""


def blocks_needed(noise: Floats, effect: float, alpha: float, *, shortfall: float = 0.0) -> int | None:
    """About how many blocks refute no effect, if differences within blocks are ``effect`` plus one of ``noise`` with
    either sign; ``None`` beyond ``MOST``.

    The evidence of n blocks is taken as normal. ``shortfall`` says how many standard deviations below its mean it may
    be: 0 for half of all experiments, 1.645 for 95 of 100.
    """
    if len(noise) < FEWEST or effect == 0:
        return None
    values = np.concatenate([noise, -noise]) + effect
    z = SLOPES[:, None] * values / math.sqrt(float(np.mean(values**2)))
    gains = z - np.abs(z) - np.log1p(np.exp(-2 * np.abs(z))) + math.log(2)
    mean, sd = gains.mean(axis=1), gains.std(axis=1)
    threshold = math.log(2 * len(SLOPES)) - math.log(alpha)

    def enough(n: int) -> bool:
        return bool(np.logaddexp.reduce(n * mean - shortfall * math.sqrt(n) * sd) >= threshold)

    low, high = 0, fewest_blocks(alpha)
    while not enough(high):
        if high >= MOST:
            return None
        low, high = high, min(2 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return max(high, fewest_blocks(alpha))

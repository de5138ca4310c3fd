"""Comparisons of two treatments: one verdict from arrays, or one after every block."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ajuste_stats.decision import Doubt, decide, doubt, stated, verdict_word
from ajuste_stats.effects import Effect, effect, margin
from ajuste_stats.fixed_comparison import compare_samples
from ajuste_stats.multiplicity import bonferroni
from ajuste_stats.pairs import Pairs
from ajuste_stats.terms import Direction, Measure, Quantity, Scale, Word


@dataclass(frozen=True)
class Verdict:
    """A verdict on a treatment against the baseline.

    ``word`` is *improves* or *worsens* (*differs* where no direction is better), *equivalent* within the smallest
    effect that matters, or *undecided*: then ``doubt`` says why, and ``more_blocks`` about how many more blocks would
    decide (``None`` where that is unknown, or none would). ``estimate``, ``low`` and ``high`` are ratios to the
    baseline, or differences from it in its unit, as ``scale`` says; ``None`` where unbounded. ``confidence`` is that of
    all comparisons together. ``blocks`` is how many pairs it rests on, or values of the smaller sample. ``p_value`` is
    that of no difference, of samples of fixed size only. ``effect`` has all else that was computed.
    """

    word: Word
    doubt: Doubt | None
    scale: Scale
    estimate: float | None
    low: float | None
    high: float | None
    confidence: float
    blocks: int
    more_blocks: int | None = None
    p_value: float | None = None
    effect: Effect | None = field(default=None, repr=False, compare=False)

    @property
    def decided(self) -> bool:
        """Return whether it is anything but *undecided*."""
        return self.word != "undecided"


def compare(
    baseline: ArrayLike,
    treatment: ArrayLike,
    *,
    direction: Direction = "none",
    smallest_effect: float = 0.05,
    paired: bool = True,
    baseline_first: ArrayLike | None = None,
    scale: Scale = "ratio",
    resolution: float = 0.0,
    quantile: float | None = None,
    unit: str = "",
    confidence: float = 0.95,
    comparisons: int = 1,
) -> Verdict:
    """Compare ``treatment`` with ``baseline``, two sequences of at least one finite number each.

    With ``paired`` values at the same place belong together, such as those of one block or one seed. Then the verdict
    may be asked for after every pair and acted on: it is wrong with probability at most 1 − ``confidence`` at all looks
    together, if the order within each block was drawn at random. ``baseline_first`` says of each pair whether the
    baseline was measured first. Give it for what was measured in time: then pairs that resemble their neighbours count
    less, and as long as the same ran first in all there is no verdict. Without it pairs are taken as independent draws.
    Samples without pairs are compared by Welch's t test, once: they may not be extended until they show something.

    ``smallest_effect`` is the share of the baseline up to which a change does not matter. ``direction`` says which
    values are better. ``scale`` is *difference* for what can be 0; ratios need positive values, and fall back to
    differences. ``resolution`` is the step of the figures in their unit, such as 1 for a count; without one it is read
    from their digits. Whole numbers without a ``unit``, compared by differences, are taken for counts. With a
    ``quantile`` between 0 and 1 that quantile of pairs is compared, and not the mean. With several ``comparisons`` each
    has its share of the error rate (Bonferroni).

    Raises ValueError for values that are no finite numbers, pairs of unequal number, and shares out of range.
    """
    first, other = numbers("baseline", baseline), numbers("treatment", treatment)
    quantity = Measure(direction, scale, resolution, quantile, unit)
    check_shares(confidence=confidence, smallest_effect=smallest_effect, quantile=quantile)
    if not paired:
        if baseline_first is not None or quantile is not None:
            raise ValueError("baseline_first and quantile are for pairs; expected paired=True, or neither")
        return _compare_samples(first, other, quantity, smallest_effect, confidence, comparisons)
    if len(first) != len(other):
        raise ValueError(f"{len(first)} values of the baseline and {len(other)} of the treatment; expected pairs")
    order = None if baseline_first is None else np.asarray(baseline_first, np.bool_)
    if order is not None and order.shape != first.shape:
        raise ValueError(f"baseline_first has {order.size} values; expected one for each of {len(first)} pairs")
    return judge_pairs(Pairs(first, other, order), quantity, smallest_effect, confidence, comparisons)


def judge_pairs(
    pairs: Pairs, quantity: Quantity, smallest_effect: float, confidence: float, comparisons: int = 1
) -> Verdict:
    """Return the verdict on ``pairs``, which may be asked for after every one."""
    alpha = bonferroni(confidence, comparisons)
    estimated = effect(pairs, quantity, alpha)
    if estimated is None:
        return Verdict("undecided", "few blocks", quantity.scale, None, None, None, confidence, 0)
    decision = decide(estimated, quantity, smallest_effect=smallest_effect, alpha=alpha)
    displayed = stated(estimated, decision.word)
    return Verdict(
        decision.word,
        decision.doubt,
        displayed.scale,
        displayed.estimate,
        displayed.low,
        displayed.high,
        confidence,
        len(pairs),
        decision.more_blocks,
        effect=estimated,
    )


def _compare_samples(
    baseline: NDArray[np.float64],
    other: NDArray[np.float64],
    quantity: Quantity,
    smallest_effect: float,
    confidence: float,
    comparisons: int,
) -> Verdict:
    alpha = bonferroni(confidence, comparisons)
    fixed = compare_samples(baseline, other, quantity, alpha)
    estimated, p_value = fixed.effect, fixed.contrast.p_value
    zone = margin(estimated, smallest_effect)
    word = verdict_word(estimated, quantity, zone)
    return Verdict(
        word,
        doubt(estimated, quantity, zone, alpha) if word == "undecided" else None,
        estimated.scale,
        estimated.estimate,
        estimated.low,
        estimated.high,
        confidence,
        min(fixed.n),
        p_value=None if math.isnan(p_value) else p_value,
        effect=estimated,
    )


class Monitor:
    """Verdicts on a treatment that may be looked at after every block, for as long as it takes.

    Add the blocks one by one; stop when ``decided``. The keyword arguments are those of ``compare``. The probability
    that it ever decides wrongly is at most 1 − ``confidence``, however often one looks and whenever one stops.
    """

    def __init__(
        self,
        *,
        direction: Direction = "none",
        smallest_effect: float = 0.05,
        scale: Scale = "ratio",
        resolution: float = 0.0,
        quantile: float | None = None,
        unit: str = "",
        confidence: float = 0.95,
        comparisons: int = 1,
    ) -> None:
        check_shares(confidence=confidence, smallest_effect=smallest_effect, quantile=quantile)
        self._quantity = Measure(direction, scale, resolution, quantile, unit)
        self._smallest_effect = smallest_effect
        self._confidence = confidence
        self._comparisons = comparisons
        self._baseline: list[float] = []
        self._treatment: list[float] = []
        self._baseline_first: list[bool | None] = []
        self._verdict: Verdict | None = None

    def add(self, baseline: float, treatment: float, *, baseline_first: bool | None = None) -> None:
        """Add a block: its value under the baseline and under the treatment, and which of them was measured first.

        Raises ValueError unless both are finite numbers, and the order is given for all blocks or for none.
        """
        numbers("block", [baseline, treatment])
        if self._baseline_first and (self._baseline_first[0] is None) != (baseline_first is None):
            raise ValueError("baseline_first is given for some blocks only; expected it for all or for none")
        self._baseline.append(float(baseline))
        self._treatment.append(float(treatment))
        self._baseline_first.append(baseline_first)
        self._verdict = None

    def __len__(self) -> int:
        return len(self._baseline)

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on the blocks so far."""
        if self._verdict is None:
            in_time = bool(self._baseline_first) and self._baseline_first[0] is not None
            pairs = Pairs(
                np.array(self._baseline, np.float64),
                np.array(self._treatment, np.float64),
                np.array(self._baseline_first, np.bool_) if in_time else None,
            )
            self._verdict = judge_pairs(
                pairs, self._quantity, self._smallest_effect, self._confidence, self._comparisons
            )
        return self._verdict

    @property
    def decided(self) -> bool:
        """Return whether the blocks so far decide."""
        return self.verdict.decided


def numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return ``values`` as an array. Raises ValueError unless they are a sequence of finite numbers, at least one."""
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{name} has the shape {array.shape}; expected a sequence of at least one number")
    if not np.all(np.isfinite(array)):
        place = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name}[{place}] is {array[place]}; expected finite numbers")
    return array


def check_shares(*, confidence: float, smallest_effect: float, quantile: float | None = None) -> None:
    """Raise ValueError for a confidence, a smallest effect or a quantile that is out of range."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; expected 0 < confidence < 1, such as 0.95")
    if not 0 < smallest_effect < math.inf:
        raise ValueError(f"smallest_effect is {smallest_effect}; expected a share above 0, such as 0.02 for 2 %")
    if quantile is not None and not 0 < quantile < 1:
        raise ValueError(f"quantile is {quantile}; expected 0 < quantile < 1")

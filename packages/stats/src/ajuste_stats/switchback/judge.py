"""Judgements on slices of a live system, with what withholds a verdict although its interval would give one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from ajuste_stats.confidence_sequences import Interval, widened
from ajuste_stats.decision import deciding_width, verdict_word
from ajuste_stats.effects import Effect, margin
from ajuste_stats.sign_intervals import SHORT, fewest_blocks, log_evidence
from ajuste_stats.switchback.evidence import (
    CARRIES,
    CarryOver,
    adjusted,
    blocks_needed,
    carry_over,
    changes_over_time,
    sequence_interval,
)
from ajuste_stats.switchback.slices import BlockDifferences, Slice, block_differences, stays_of, stays_of_values
from ajuste_stats.switchback.stays import PROJECTED, SETTLED, StayDifferences, both_sides, stay_noise
from ajuste_stats.terms import Quantity, Word

ALPHA_OF_CONTROL: Final = 0.1
"""The part of the error rate for whether a treatment changes the control itself."""
HELPS: Final = 0.9
"""A control helps where less than this share of the variance is left with it."""

Withheld = Literal["unknown carry-over", "carry-over", "not settled", "stays"]
"""Reasons that withhold a verdict which the interval would give:

- *unknown carry-over*: too few slices follow each treatment to know whether its effect reaches into the next
- *carry-over*: a treatment changes the slice after its own by more than the smallest effect
- *not settled*: with what it does to the next slice the effect is not certain yet
- *stays*: the gain is not certain when the treatment stays, or none
"""


@dataclass(frozen=True)
class StayJudgement:
    """Judgement on whether a gain remains when its treatment stays: it ``agrees``, or ``reverses`` for certain.

    ``settled`` and ``projected`` are the intervals of the effect at the end of stays, and once more as long after it;
    ``None`` without any. ``more_blocks`` is about how many more blocks of stays decide, ``fewest`` how many it takes.
    """

    fewest: int
    settled: Interval | None = None
    projected: Interval | None = None
    agrees: bool = False
    reverses: bool = False
    more_blocks: int | None = None


@dataclass(frozen=True)
class SliceJudgement:
    """Judgement on one ``treatment`` by the slices so far, against the baseline, in a ``word``.

    ``effect`` is ``None`` where no block has a slice of both that counts. ``withheld`` says what withholds a verdict
    that the interval would give, ``carried`` what it does to the next slice, ``stays`` what it does when it stays.
    ``more_blocks`` is about how many more blocks decide (of stays where these are awaited); ``None`` where that is
    unknown. ``alpha`` is the error rate of the interval: a control takes some of it. ``adjusted``: the noise is that at
    equal load, by the control. ``changes_control``: it changes the control itself, which is not used. ``changes``: the
    effect changes over time. ``untested``: the order does not show whether it does the same when it stays.
    """

    treatment: str
    word: Word
    effect: Effect | None = None
    withheld: Withheld | None = None
    carried: CarryOver | None = None
    stays: StayJudgement | None = None
    more_blocks: int | None = None
    alpha: float = 0.05
    adjusted: bool = False
    changes_control: bool = False
    changes: bool = False
    untested: bool = False

    @property
    def awaits_stays(self) -> bool:
        """Return whether it improves at once, and only blocks of stays are lacking."""
        return self.stays is not None and not (self.stays.agrees or self.stays.reverses)

    @property
    def decided(self) -> bool:
        """Return whether nothing is open: more slices change nothing."""
        return self.word != "undecided" or (self.stays is not None and self.stays.reverses)


def judge_treatment(
    slices: Sequence[Slice],
    quantity: Quantity,
    *,
    baseline: str,
    treatment: str,
    alpha: float,
    smallest_effect: float,
    stays: bool = False,
) -> SliceJudgement:
    """Judge ``treatment`` against ``baseline`` on the ``slices`` so far, at error rate ``alpha`` at all looks together.

    That rests on blocks whose order was drawn as in ``design``, also for the incomplete block at the end: any two
    treatments of it could as well have been exchanged. With ``stays`` nothing improves that does not when it stays.
    """
    differences = block_differences(slices, quantity, baseline, treatment)
    if differences is None:
        return SliceJudgement(treatment, "undecided")
    stays_so_far = stays_of(slices, (baseline, treatment)) if stays else None
    return _judged(differences, treatment, quantity, stays_so_far, alpha=alpha, smallest_effect=smallest_effect)


def _judged(
    differences: BlockDifferences,
    treatment: str,
    quantity: Quantity,
    stays: Sequence[tuple[list[Slice], list[Slice]]] | None,
    *,
    alpha: float,
    smallest_effect: float,
) -> SliceJudgement:
    control, changes_control = differences.control, False
    if control is not None:
        changes_control = float(np.max(log_evidence(control))) >= -math.log(ALPHA_OF_CONTROL * alpha)
        control = None if changes_control else control
        alpha *= 1 - ALPHA_OF_CONTROL
    interval = sequence_interval(differences.values, alpha=alpha, floor=differences.floor, control=control)
    if differences.rounding > 0:
        interval = widened(interval, differences.rounding)
    effect = Effect(
        differences.scale,
        interval,
        differences.baseline_mean,
        differences.step,
        rounding=differences.rounding,
        same=differences.same,
        fell_back=differences.fell_back,
        baseline_level=differences.baseline_mean,
    )
    zone = margin(effect, smallest_effect)
    word = verdict_word(effect, quantity, zone)
    carried = carry_over(differences, control)
    withheld = None if word == "undecided" else _withheld(carried, zone)
    differs = withheld is None and word not in ("undecided", "equivalent")
    untested, more = differs and not carried.shows_settled, None
    if differs and carried.shows_settled and not carried.settles(interval.mean):
        withheld = "not settled"
        if carried.settled * interval.mean > 0:
            more = max(1, math.ceil((carried.times_as_many - 1) * interval.n))
    staying = None
    if word == "improves" and withheld is None and stays is not None:
        pairs = stays_of_values(stays, differences, use_control=control is not None)
        staying = judge_stays(*pairs, effect, alpha=alpha, floor=differences.floor)
        withheld, more = (None if staying.agrees else "stays"), staying.more_blocks
    if withheld is not None:
        word = "undecided"
    noise, helps = differences.values - float(np.mean(differences.values)), False
    if control is not None and len(noise) > 2:
        left = adjusted(noise, control)
        helps = float(np.var(left)) < HELPS * float(np.var(noise))
        noise = left if helps else noise
    if word == "undecided" and withheld is None:
        needed = blocks_needed(noise, deciding_width(interval, zone), alpha)
        more = None if needed is None else max(1, needed - interval.n)
    return SliceJudgement(
        treatment,
        word,
        effect,
        withheld,
        carried,
        staying,
        more,
        alpha,
        adjusted=helps,
        changes_control=changes_control,
        changes=changes_over_time(differences.values),
        untested=untested,
    )


def _withheld(carried: CarryOver, zone: float) -> Withheld | None:
    if not carried.known:
        return "unknown carry-over"
    return None if carried.p_value >= CARRIES or abs(carried.size) <= zone else "carry-over"


def judge_stays(
    values: StayDifferences, controls: StayDifferences | None, effect: Effect, *, alpha: float, floor: float
) -> StayJudgement:
    """Judge whether the gain of ``effect`` remains when its treatment stays.

    Two tests, each one-sided at error rate ``alpha`` at all looks together: the effect at the end of stays is a gain,
    and it would still be one if it grew once more by as much as within the stay. Both must succeed, so a gain that is
    none by either is found with probability at most ``alpha`` (intersection-union: Berger 1982, "Multiparameter
    hypothesis testing and acceptance sampling", Technometrics 24). Each is an interval of signs at twice the rate, of
    whose two sides only one can be wrong. ``floor`` is that of single differences.
    """
    rate = both_sides(alpha)
    fewest = fewest_blocks(rate)
    if not len(values.settled):
        return StayJudgement(fewest, more_blocks=fewest)
    settled, projected = (
        sequence_interval(
            differences,
            alpha=rate,
            floor=stay_noise(floor, weights),
            control=control,
            mixture=SHORT,
        )
        for differences, control, weights in (
            (values.settled, None if controls is None else controls.settled, SETTLED),
            (values.projected, None if controls is None else controls.projected, PROJECTED),
        )
    )
    side = math.copysign(1.0, effect.interval.mean)
    judgement = StayJudgement(fewest, settled, projected)
    if lies(settled, side) and lies(projected, side):
        return replace(judgement, agrees=True)
    if lies(settled, -side) or lies(projected, -side):
        return replace(judgement, reverses=True)
    if settled.n < fewest:
        return replace(judgement, more_blocks=fewest - settled.n)
    needed = [
        blocks_needed(differences - interval.mean, interval.mean, rate) if side * interval.mean > 0 else None
        for differences, interval in ((values.settled, settled), (values.projected, projected))
    ]
    known = [count for count in needed if count is not None]
    return replace(judgement, more_blocks=max(1, max(known) - settled.n) if len(known) == len(needed) else None)


def lies(interval: Interval, side: float) -> bool:
    """Return whether all of the interval is above (``side`` +1) or below (−1) no effect."""
    return (interval.low if side > 0 else -interval.high) > 0

"""Decisions: what an effect with its interval says, in a word, and about how many more blocks decide."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal

from ajuste_stats.confidence_sequences import Interval, fewest_for, interval_between, values_needed
from ajuste_stats.effects import Effect, margin
from ajuste_stats.precision import MOST_BLOCKS
from ajuste_stats.sign_intervals import blind_spot, fewest_blocks
from ajuste_stats.terms import SEEN, LimitWord, Quantity, Word

Doubt = Literal[
    "few blocks",
    "one order",
    "carry-over",
    "averages",
    "end",
    "few trials",
    "coarse",
    "few events",
    "same",
    "wide",
]
"""Reasons that nothing is decided:

- *few blocks*: no interval yet; *one order*: the same of the two ran first in every block
- *carry-over*: a trial changes the one after it, by so much that the effect may have another sign
- *averages*: typical and mean trials change differently, or may: a few cost more than the others save
- *end*: many figures are exactly the largest or smallest one, as if they were cut off there
- *few trials*: alike so far, in too few to see what happens seldom
- *coarse*: the steps of the figures hide more than would decide; *few events*: so few bound no rate
- *same*: all alike, in too few blocks; *wide*: the interval includes no effect and one that matters
"""


def verdict_word(effect: Effect, quantity: Quantity, zone: float, alpha: float = 0.05) -> Word:
    """Return the verdict in a word. ``zone`` is the half width of the zone of equivalence, see ``effects.margin``."""
    low, high = effect.interval.low, effect.interval.high
    includes_none = low <= 0 <= high
    if is_within(effect, zone):
        unseen = too_few_trials(effect) or averages_exceed(effect, zone) or effect.ends_at is not None
        return "undecided" if unseen or carries_over(effect, zone) else "equivalent"
    if includes_none or disagree(effect, zone, alpha) or carries_over(effect, zone):
        return "undecided"
    if quantity.direction == "none":
        return "differs"
    return "improves" if (low > 0) == (quantity.direction == "higher") else "worsens"


def is_within(effect: Effect, zone: float) -> bool:
    """Return whether the effect lies within the zone of equivalence.

    It cannot lie beyond both edges, so each may be refuted at the full error rate (Schuirmann 1987, "A comparison of
    the two one-sided tests procedure and the power approach", Journal of Pharmacokinetics and Biopharmaceutics 15).
    """
    bounds = effect.each_side or effect.interval
    return -zone < bounds.low and bounds.high < zone and not too_few_events(effect, zone)


def stated(effect: Effect, word: Word) -> Effect:
    """Return ``effect`` with the interval that is shown with ``word``.

    With bounds of the full error rate each, the interval that reaches from them to no effect has that error rate, too:
    only the bound on the effect's side can be wrong (Hsu, Hwang, Liu and Ruberg 1994, "Confidence intervals associated
    with tests for bioequivalence", Biometrika 81).
    """
    both, each = effect.interval, effect.each_side
    if word != "equivalent" or each is None:
        return effect
    low, high = max(both.low, min(0.0, each.low)), min(both.high, max(0.0, each.high))
    return replace(effect, interval=interval_between(both.n, both.mean, low, high, both.variance))


def too_few_events(effect: Effect, zone: float) -> bool:
    """Return whether so few events say too little of the ratio of rates; trials without any say nothing."""
    if effect.rates is None:
        return False
    limit = zone / abs(effect.baseline_mean) if effect.baseline_mean else 0.0
    return not 1 - limit < effect.rates.low <= effect.rates.high < 1 + limit


def is_too_coarse(effect: Effect, zone: float) -> bool:
    """Return whether the steps of the figures hide more than would decide, however many trials there are."""
    known = effect.rounding > 0 and math.isfinite(effect.interval.half_width)
    return known and deciding_width(effect.interval, zone) <= effect.rounding


def averages_exceed(effect: Effect, zone: float) -> bool:
    """Return whether typical trials are alike and mean ones may not be: a few cost more than does not matter."""
    return any(abs(mean) > zone for mean in effect.mean_range)


def carries_over(effect: Effect, zone: float) -> bool:
    """Return whether what a trial does to the one after it hides, or reverses, the effect where each follows itself."""
    if effect.settled is None:
        return False
    return abs(effect.settled) > zone if is_within(effect, zone) else effect.settled * effect.interval.mean < 0


def disagree(effect: Effect, zone: float, alpha: float = 0.05) -> bool:
    """Return whether typical trials change for one side, and mean ones, or the median, may for the other."""
    opposite = effect.typical * effect.interval.mean < 0 and abs(effect.typical) > zone
    return effect.averages_disagree or opposite or effect.means_oppose(alpha)


def blocks_to_decide(alpha: float) -> int:
    """Return the smallest number of blocks with which every verdict is possible, *equivalent* among them."""
    return max(fewest_blocks(alpha), trials_needed())


def trials_needed(confidence: float = 0.95) -> int:
    """Return how many trials *equivalent* needs: what happens in a share of ``SEEN`` is in at least one of them."""
    return next(trials for trials in count(1) if blind_spot(trials, confidence) <= SEEN)


def too_few_trials(effect: Effect) -> bool:
    """Return whether so few trials are alike that what happens in a share of ``SEEN`` may be in none of them."""
    return effect.seen is not None and effect.seen < trials_needed()


def blocks_in_all(interval: Interval, zone: float, alpha: float) -> int | None:
    """Return about how many blocks in all decide, at the mean and spread of those of ``interval``.

    ``None`` below two blocks, for a quantile, and beyond ``MOST_BLOCKS``. ``zone`` as in ``verdict_word``. How good a
    guide this is, is simulated in ``benchmarks.verdicts`` of Ajuste.
    """
    return _blocks_for(interval, deciding_width(interval, zone), _deciding_rate(interval, zone, alpha))


def _deciding_rate(interval: Interval, zone: float, alpha: float) -> float:
    # Return the error rate of an interval of two sides that decides: *equivalent* has all of it on each.
    return 2 * alpha if abs(interval.mean) < zone / 2 and alpha < 1 / 2 else alpha


def deciding_width(interval: Interval, zone: float) -> float:
    """Return the half width below which an interval around the same mean decides."""
    mean = abs(interval.mean)
    return max(mean, zone - mean)


def _blocks_for(interval: Interval, half_width: float, alpha: float) -> int | None:
    if interval.n < 2 or math.isnan(interval.variance):
        return None
    variance = interval.variance * interval.n / (interval.n - 1)
    needed = values_needed(variance, half_width, alpha, most=MOST_BLOCKS) if half_width > 0 else None
    return None if needed is None else max(needed, fewest_blocks(alpha))


def more_blocks(effect: Effect, zone: float, alpha: float) -> int | None:
    """Return about how many more blocks would decide; ``None`` where they would not, and where that is unknown."""
    if carries_over(effect, zone) or (effect.ends_at is not None and is_within(effect, zone)):
        return None
    rate = _deciding_rate(effect.interval, zone, alpha) if effect.each_side else alpha
    more = _more_for(effect, deciding_width(effect.interval, zone) - effect.rounding, rate)
    if more is None or not effect.seen or not too_few_trials(effect) or abs(effect.interval.mean) >= zone / 2:
        return more
    return max(more, math.ceil(trials_needed() * effect.interval.n / effect.seen) - effect.interval.n)


def _more_for(effect: Effect, half_width: float, alpha: float) -> int | None:
    needed = _blocks_for(effect.interval, half_width, alpha)
    return None if needed is None else max(1, needed - effect.interval.n)


def is_precise(effect: Effect, precision: float) -> bool:
    """Return whether the interval reaches no further than ``precision`` to each side, as a share of the baseline.

    Ratios may be wrong by a factor of 1 + ``precision``, and differences from a baseline of 0 by one step of the
    figure.
    """
    return (effect.interval.high - effect.interval.low) / 2 <= (margin(effect, precision) or effect.step)


def limit_word(effect: Effect, quantity: Quantity, limit: float) -> LimitWord:
    """Return whether ``effect`` is a change for the worse by more than ``limit``, a share of the baseline.

    It is *beyond* only where the whole interval is: that it excludes zero is not enough. Of a quantity without a better
    direction a change to either side counts.
    """
    bounds = _worse(effect, quantity, limit)
    if any(low > limit_at for low, _, limit_at in bounds):
        return "beyond"
    return "within" if all(high <= limit_at for _, high, limit_at in bounds) else "undecided"


def _worse(effect: Effect, quantity: Quantity, limit: float) -> list[tuple[float, float, float]]:
    # Return for each worse side the interval, turned so that worse is higher, and the limit on the same scale.
    #
    # Unlike the zone of equivalence, a fall by 10 % is a ratio of 0.9 here, as people mean it.
    low, high = effect.interval.low, effect.interval.high
    if effect.scale == "ratio":
        rise, fall = math.log1p(limit), -math.log1p(-limit) if limit < 1 else math.inf
    else:
        rise = fall = margin(effect, limit)
    sides = {"lower": [(low, high, rise)], "higher": [(-high, -low, fall)]}
    return sides.get(quantity.direction) or [*sides["lower"], *sides["higher"]]


@dataclass(frozen=True)
class Decision:
    """A verdict in a ``word``; where it is *undecided*, the ``doubt``.

    ``more_blocks`` is about how many more blocks would decide; ``None`` where nothing is open, where they would not
    help, and where that is unknown. ``precise`` says whether the interval is as narrow as was asked for, if that was.
    """

    word: Word
    doubt: Doubt | None = None
    more_blocks: int | None = None
    precise: bool | None = None


def decide(
    effect: Effect, quantity: Quantity, *, smallest_effect: float, alpha: float, precision: float | None = None
) -> Decision:
    """Decide what ``effect``, with an interval of error rate ``alpha``, says.

    ``smallest_effect`` is the share of the baseline up to which a change does not matter, ``precision`` the half width
    that the interval should have, as such a share.
    """
    zone = margin(effect, smallest_effect)
    word = verdict_word(effect, quantity, zone, alpha)
    precise = None if precision is None else is_precise(effect, precision)
    more = [more_blocks(effect, zone, alpha)] if word == "undecided" else []
    if precision and not precise:
        more.append(_more_for(effect, margin(effect, precision), alpha))
    known = [blocks for blocks in more if blocks is not None]
    return Decision(
        word,
        doubt(effect, quantity, zone, alpha) if word == "undecided" else None,
        max(known) if known and len(known) == len(more) else None,
        precise,
    )


def doubt(effect: Effect, quantity: Quantity, zone: float, alpha: float = 0.05) -> Doubt:
    """Return why ``effect`` is undecided. ``zone`` as in ``verdict_word``."""
    if effect.low is None and effect.high is None:
        least = blocks_for_interval(quantity, alpha)
        return "one order" if effect.same_order and least is not None and effect.interval.n >= least else "few blocks"
    certain, within = not effect.interval.low <= 0 <= effect.interval.high, is_within(effect, zone)
    reasons: list[tuple[Doubt, bool]] = [
        ("carry-over", carries_over(effect, zone)),
        ("averages", (certain and disagree(effect, zone)) or (within and averages_exceed(effect, zone))),
        ("end", within and effect.ends_at is not None),
        ("few trials", within and too_few_trials(effect)),
        ("coarse", is_too_coarse(effect, zone)),
        ("few events", not certain and too_few_events(effect, zone)),
        ("same", effect.same),
    ]
    return next((reason for reason, holds in reasons if holds), "wide")


def blocks_for_interval(quantity: Quantity, alpha: float) -> int | None:
    """Return the fewest blocks that give an interval; ``None`` if more than ``MOST_VALUES``."""
    return fewest_blocks(alpha) if quantity.quantile is None else fewest_for(quantity.quantile, alpha / 2)


@dataclass(frozen=True)
class LimitDecision:
    """Answer in a ``word`` whether a change for the worse exceeds a limit; about how many ``more_blocks`` decide.

    What is ``too_coarse`` no number of blocks decides.
    """

    word: LimitWord
    more_blocks: int | None = None
    too_coarse: bool = False


def decide_limit(effect: Effect, quantity: Quantity, limit: float, alpha: float) -> LimitDecision:
    """Decide whether ``effect`` is a change for the worse by more than ``limit``, as in ``limit_word``."""
    word = limit_word(effect, quantity, limit)
    if word != "undecided":
        return LimitDecision(word)
    distance = min(abs((low + high) / 2 - limit_at) for low, high, limit_at in _worse(effect, quantity, limit))
    if effect.rounding > 0 and distance <= effect.rounding and math.isfinite(effect.interval.half_width):
        return LimitDecision(word, too_coarse=True)
    return LimitDecision(word, _more_for(effect, distance, alpha) if math.isfinite(distance) else None)

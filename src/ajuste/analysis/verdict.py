"""Verdicts: what can be said of every configuration against the baseline, on every metric."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

import numpy as np

from ajuste.analysis.effects import Effect, Tail, effect, margin
from ajuste.analysis.pairs import Clean, Trials, clean_trials, pairs
from ajuste.analysis.sequence import MOST_VALUES, Interval, fewest_for, values_needed
from ajuste.analysis.signs import blind_spot, fewest_blocks
from ajuste.analysis.summary import MOST_BLOCKS
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration
from ajuste.model.verdict import LimitWord, Verdict, Word
from ajuste.model.wording import amount, change, count_of, number, percent, quantity, signed

SEEN: Final = 0.1
"""*Equivalent* needs so many seeds that what happens in this share of them is in at least one."""


@dataclass(frozen=True)
class Family:
    """All the comparisons that decide a study, which together hold with ``confidence`` (Bonferroni's inequality)."""

    comparisons: int
    confidence: float

    @property
    def alpha(self) -> float:
        """The error rate of one interval of the family."""
        return (1 - self.confidence) / max(1, self.comparisons)

    def describe(self, configurations: int, metrics: int) -> str:
        """The correction in words, for ``configurations`` besides the baseline and ``metrics`` that decide."""
        if self.comparisons < 2:
            return f"none needed: one comparison, at {percent(self.confidence)}"
        return (
            f"Bonferroni: {count_of(configurations, 'configuration')} × {count_of(metrics, 'deciding metric')} = "
            f"{self.comparisons} comparisons, each at {percent(1 - self.alpha)}, so that all hold together at "
            f"{percent(self.confidence)} whenever the study stops; other metrics have intervals of "
            f"the same width but are not part of that promise"
        )


def family(configurations: Sequence[Configuration], deciding: Sequence[Metric], confidence: float) -> Family:
    """The family of a study: every configuration but the baseline, on every deciding metric."""
    return Family((len(configurations) - 1) * len(deciding), confidence)


def judge(
    configurations: Sequence[Configuration],
    trials: Trials,
    deciding: Sequence[Metric],
    described: Sequence[Metric] = (),
    *,
    confidence: float = 0.95,
    smallest_effect: float = 0.05,
    precision: float | None = None,
    order_matters: bool = True,
    limited: bool = False,
) -> tuple[Verdict, ...]:
    """The verdicts, metric by metric (deciding ones first), configuration by configuration.

    Described metrics that no pair of trials has give no verdict. ``confidence`` is that of the whole family of
    deciding comparisons, at all numbers of blocks together. ``precision`` is the half width that the intervals of
    deciding metrics should have, relative to the baseline. For ``order_matters`` see ``analysis.pairs``. With
    ``limited`` verdicts also say whether a change for the worse exceeds ``smallest_effect``.
    """
    baseline = next(c for c in configurations if c.baseline)
    others = [c for c in configurations if not c.baseline]
    clean = clean_trials(trials)
    alpha = family(configurations, deciding, confidence).alpha
    verdicts = []
    wanted = _Wanted(confidence, alpha, smallest_effect)
    for metric in (*deciding, *described):
        is_deciding = metric in deciding
        own = replace(wanted, precision=precision if is_deciding else None)
        for other in others:
            both = pairs(clean, baseline.name, other.name, metric.column, order_matters=order_matters)
            found = effect(both, metric, alpha)
            if found is not None:
                made = _verdict(found, other.name, metric, own, is_deciding)
                unseen = blind_spot(made.blocks, confidence) if metric.quantile is None else None
                made = made.model_copy(update={"of_rounds": clean.of_rounds, "unseen": unseen})
                if limited:
                    made = made.model_copy(update=_against_limit(found, metric, smallest_effect, alpha))
                verdicts.append(made)
            elif is_deciding:
                reason = _why_none(clean, (baseline.name, other.name), metric.column)
                verdicts.append(unmeasured(other.name, metric, confidence, reason))
    return tuple(verdicts)


@dataclass(frozen=True)
class _Wanted:
    """What is wanted of one interval: its error rate ``alpha``, and how narrow it should be, if that matters."""

    confidence: float
    alpha: float
    smallest_effect: float
    precision: float | None = None


def _verdict(found: Effect, configuration: str, metric: Metric, wanted: _Wanted, deciding: bool) -> Verdict:
    zone = margin(found, wanted.smallest_effect)
    word = word_of(found, metric, zone)
    precise = None if wanted.precision is None else is_precise(found, wanted.precision)
    more = [more_blocks(found, zone, wanted.alpha)] if word == "undecided" else []
    if wanted.precision and not precise:
        more.append(_more_for(found, margin(found, wanted.precision), wanted.alpha))
    known = [blocks for blocks in more if blocks is not None]
    return of_effect(
        found,
        configuration,
        metric,
        word,
        level=wanted.confidence,
        blocks=found.interval.n,
        more_blocks=max(known) if known and len(known) == len(more) else None,
        deciding=deciding,
        precise=precise,
        few_seeds=word == "undecided" and too_few_seeds(found) and is_within(found, zone),
        reason=reason_of(word, found, metric, wanted.smallest_effect, _so_far(found, metric, wanted.alpha)),
    )


def half_width_of(found: Effect) -> float:
    """Half the width of the interval, on its scale; infinite while nothing can be said."""
    return (found.interval.high - found.interval.low) / 2


def is_precise(found: Effect, precision: float) -> bool:
    """Whether the interval reaches no further than ``precision`` to each side, as a share of the baseline. Ratios may
    be wrong by a factor of 1 + ``precision``, and differences from a baseline of 0 by one step of the figure.
    """
    return half_width_of(found) <= margin(found, precision)


def of_effect(found: Effect, configuration: str, metric: Metric, word: Word, **more: Any) -> Verdict:
    """The verdict ``word`` with the figures of the effect that it rests on; ``more`` are its other fields."""
    return Verdict(configuration=configuration, verdict=word, **figures_of(found, metric), **more)


def figures_of(found: Effect | None, metric: Metric) -> dict[str, Any]:
    """What any finding says of an effect on ``metric``; without one, that nothing is known."""
    return {
        "metric": metric.name,
        "unit": metric.unit,
        "direction": metric.direction,
        "scale": found.scale if found else metric.scale,
        "old": _without_rounding(found.baseline_level) if found else None,
        "new": _without_rounding(found.level) if found else None,
        "means_disagree": bool(found and found.means_disagree),
        "estimate": found.estimate if found else None,
        "low": found.low if found else None,
        "high": found.high if found else None,
    }


def _without_rounding(figure: float | None) -> float | None:
    """To 12 digits: logarithms and back cost the last ones, and 100 is to stay 100."""
    return None if figure is None else float(f"{figure:.12g}")


def word_of(found: Effect, metric: Metric, zone: float) -> Word:
    """The verdict in a word. ``zone`` is the half width of the zone of equivalence, see ``effects.margin``."""
    low, high = found.interval.low, found.interval.high
    includes_none = low <= 0 <= high
    if is_within(found, zone):
        return "undecided" if too_few_seeds(found) or means_exceed(found, zone) else "equivalent"
    if includes_none or found.means_disagree:
        return "undecided"
    if metric.direction == "none":
        return "differs"
    return "improves" if (low > 0) == (metric.direction == "higher") else "worsens"


def is_within(found: Effect, zone: float) -> bool:
    """Whether the interval lies within the zone of equivalence."""
    low, high = found.interval.low, found.interval.high
    return -zone < low and high < zone and (low <= 0 <= high or found.baseline_mean != 0)


def means_exceed(found: Effect, zone: float) -> bool:
    """Whether typical trials are alike and mean ones are not: a few cost more than does not matter."""
    return found.means_ratio is not None and abs(found.means_ratio) > zone


def seeds_needed(confidence: float = 0.95) -> int:
    """How many seeds *equivalent* needs: then what happens in a share of ``SEEN`` is in at least one of them."""
    return next(blocks for blocks in count(1) if blind_spot(blocks, confidence) <= SEEN)


def too_few_seeds(found: Effect) -> bool:
    """Whether blocks differ by their seed only, and are too few for *equivalent*: a few that happen to be alike have no
    spread that would widen the interval.
    """
    return found.of_seeds and found.interval.n < seeds_needed()


def blocks_in_all(interval: Interval, zone: float, alpha: float) -> int | None:
    """About how many blocks in all decide, were mean and spread to stay as they are after those of ``interval``.

    ``None`` below two blocks, for a quantile, and beyond ``MOST_BLOCKS``. ``zone`` as in ``word_of``. How good a guide
    this is, is simulated in ``benchmarks.verdicts`` (docs/explanation/statistics.md has the figures).
    """
    return _blocks_for(interval, deciding_width(interval, zone), alpha)


def deciding_width(interval: Interval, zone: float) -> float:
    """The half width below which an interval around the same mean decides."""
    mean = abs(interval.mean)
    return max(mean, zone - mean)


def _blocks_for(interval: Interval, half_width: float, alpha: float) -> int | None:
    """About how many blocks in all make an interval that is narrower than that."""
    if interval.n < 2 or math.isnan(interval.variance):
        return None
    variance = interval.variance * interval.n / (interval.n - 1)
    needed = values_needed(variance, half_width, alpha, most=MOST_BLOCKS) if half_width > 0 else None
    return None if needed is None else max(needed, fewest_blocks(alpha))


def more_blocks(found: Effect, zone: float, alpha: float) -> int | None:
    """About how many more blocks would decide."""
    more = _more_for(found, deciding_width(found.interval, zone), alpha)
    if more is None or not found.of_seeds or abs(found.interval.mean) >= zone / 2:
        return more
    return max(more, seeds_needed() - found.interval.n)


def _more_for(found: Effect, half_width: float, alpha: float) -> int | None:
    """About how many more blocks make the interval narrower than that."""
    needed = _blocks_for(found.interval, half_width, alpha)
    return None if needed is None else max(1, needed - found.interval.n)


# Whether a limit is exceeded: a question with one side.


def limit_word(found: Effect, metric: Metric, limit: float) -> LimitWord:
    """Whether ``found`` is a change for the worse by more than ``limit``, a share of the baseline.

    It is *beyond* only where the whole interval is: that it excludes zero is not enough. Of a metric without a better
    direction a change to either side counts.
    """
    bounds = _worse(found, metric, limit)
    if any(low > limit_at for low, _, limit_at in bounds):
        return "beyond"
    return "within" if all(high <= limit_at for _, high, limit_at in bounds) else "undecided"


def _against_limit(found: Effect, metric: Metric, limit: float, alpha: float) -> dict[str, Any]:
    """What a verdict says of it, with about how many more blocks would decide."""
    word = limit_word(found, metric, limit)
    if word != "undecided":
        return {"against_limit": word, "more_blocks": None}
    distance = min(abs((low + high) / 2 - limit_at) for low, high, limit_at in _worse(found, metric, limit))
    return {
        "against_limit": word,
        "more_blocks": _more_for(found, distance, alpha) if math.isfinite(distance) else None,
    }


def _worse(found: Effect, metric: Metric, limit: float) -> list[tuple[float, float, float]]:
    """For each worse side the interval, turned so that worse is higher, and the limit on the same scale.

    Unlike the zone of equivalence, a fall by 10 % is a ratio of 0.9 here, as people mean it.
    """
    low, high = found.interval.low, found.interval.high
    if found.scale == "ratio":
        rise, fall = math.log1p(limit), -math.log1p(-limit) if limit < 1 else math.inf
    else:
        rise = fall = margin(found, limit)
    sides = {"lower": [(low, high, rise)], "higher": [(-high, -low, fall)]}
    return sides.get(metric.direction) or [*sides["lower"], *sides["higher"]]


def _so_far(found: Effect, metric: Metric, alpha: float) -> str:
    least = fewest_blocks(alpha) if metric.quantile is None else fewest_for(metric.quantile, alpha / 2)
    if least is None:
        return f"this percentile needs more than {number(MOST_VALUES)} blocks"
    if found.same_order and found.interval.n >= least:
        return (
            f"the same configuration ran first in each of {count_of(found.interval.n, 'block')}, so a drift would look "
            f"like an effect; a block in the other order is needed"
        )
    return f"{count_of(found.interval.n, 'block')} of the {number(least)} that an interval requires"


def reason_of(word: Word, found: Effect, metric: Metric, smallest_effect: float, too_few: str) -> str:
    """Why a verdict is what it is, in a plain sentence; ``too_few`` says it where there is no interval yet."""
    text = _finding(word, found, metric, smallest_effect, too_few)
    if found.fell_back:
        text += " (compared by differences, because a value is 0 or negative)"
    return text


def _finding(word: Word, found: Effect, metric: Metric, smallest_effect: float, too_few: str) -> str:
    def say(value: float | None) -> str:
        return change(value, found.scale, metric.unit, like=found.estimate)

    if found.low is None and found.high is None:
        return too_few
    interval = f"{say(found.low)} to {say(found.high)}"
    around = _zone(found, metric, smallest_effect)
    zone, within = margin(found, smallest_effect), is_within(found, margin(found, smallest_effect))
    certain = not found.interval.low <= 0 <= found.interval.high
    if word == "undecided" and ((found.means_disagree and certain) or (within and means_exceed(found, zone))):
        means = say(found.natural(found.means_ratio or 0.0))
        said = f"typical and mean trials disagree: the typical ratio is {say(found.estimate)}, that of means {means}"
        return "; ".join((said, *(_tail(one, metric) for one in found.tails)))
    if word == "undecided" and too_few_seeds(found) and within:
        return (
            f"alike in {count_of(found.interval.n, 'seed')}, too few to see what happens in fewer than "
            f"{percent(SEEN)} of them; {seeds_needed()} are needed"
        )
    if word == "equivalent":
        if found.interval.low > 0 or found.interval.high < 0:
            return f"the difference, {interval}, is real but smaller than {around}"
        return f"the difference is within {around}: {interval}"
    if word == "undecided" and found.same:
        times = count_of(found.interval.n, "block")
        return f"the same in each of {times}, too few to exclude a difference of more than {around}"
    if word == "undecided":
        alike = f"; neighbouring blocks resemble each other, so it is {found.wider:.1f} times as wide"
        return f"the interval, {interval}, includes zero and extends beyond {around}{alike if found.wider > 1 else ''}"
    side, near, far = ("higher", found.low, found.high) if found.interval.mean > 0 else ("lower", found.high, found.low)
    by = f"{side} by {say(near).lstrip('+−')} to {say(far).lstrip('+−')}"
    if word == "differs":
        return f"{by}; neither higher nor lower counts as better"
    return f"{by}, and {metric.direction} is better"


def _tail(one: Tail, metric: Metric) -> str:
    return f"p{100 * one.quantile:g} goes from {amount(one.baseline, metric.unit)} to {amount(one.other, metric.unit)}"


def _zone(found: Effect, metric: Metric, smallest_effect: float) -> str:
    zone = margin(found, smallest_effect)
    if found.scale == "ratio":
        return f"±{percent(smallest_effect)}"
    if found.baseline_mean == 0:
        return f"±{quantity(signed(zone).lstrip('+'), metric.unit)} (one step of the figure; the baseline is 0)"
    return f"±{quantity(signed(zone).lstrip('+'), metric.unit)} ({percent(smallest_effect)} of the baseline)"


def _why_none(clean: Clean, names: tuple[str, str], metric: str) -> str:
    """Why there is no pair: not supported, no clean trial, or simply nothing yet."""
    measured = clean.measured
    for name in names:
        for reasons in measured.not_supported.among(clean.of(name)):
            if metric in reasons:
                return f"not supported: {reasons[metric]}"
    for name in names:
        own = measured.of(name)
        own = own[~measured.warm_up[own]]
        if len(own) and not np.any(measured.has_status("ok")[own]):
            reason, _ = Counter(measured.reason[row] for row in own).most_common(1)[0]
            return f"no clean trial of {name}: {reason}"
    if len(clean):
        return "no block has this metric under both the baseline and this configuration"
    return "nothing was measured yet"


def unmeasured(configuration: str, metric: Metric, confidence: float, reason: str, *, deciding: bool = True) -> Verdict:
    """The verdict where there is nothing to compare, for that ``reason``."""
    return Verdict(
        configuration=configuration,
        verdict="undecided",
        **figures_of(None, metric),
        level=confidence,
        blocks=0,
        deciding=deciding,
        reason=reason,
    )

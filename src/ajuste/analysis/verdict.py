"""Verdicts: every configuration against the baseline, on every metric."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

import numpy as np

from ajuste.analysis.confidence_sequences import MOST_VALUES, Interval, fewest_for, interval_between, values_needed
from ajuste.analysis.effects import Effect, effect, margin
from ajuste.analysis.pairs import Clean, Trials, clean_trials, pairs
from ajuste.analysis.rare_counts import RateRatio
from ajuste.analysis.sign_intervals import blind_spot, fewest_blocks
from ajuste.analysis.summary import MOST_BLOCKS
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, compared
from ajuste.model.verdict import SEEN, LimitWord, Verdict, Word
from ajuste.model.wording import amount, change, count_of, number, percent


@dataclass(frozen=True)
class Family:
    """The comparisons that decide a study, which together hold with ``confidence`` (Bonferroni's inequality)."""

    comparisons: int
    confidence: float

    @property
    def alpha(self) -> float:
        """Return the error rate of one interval of the family."""
        return (1 - self.confidence) / max(1, self.comparisons)

    def describe(self, metrics: int) -> str:
        """Describe the correction for as many ``metrics`` that decide."""
        if self.comparisons < 2:
            return f"none needed: one comparison, at {percent(self.confidence)}"
        each = count_of(self.comparisons // metrics, "configuration")
        return (
            f"Bonferroni: {each} × {count_of(metrics, 'deciding metric')} = "
            f"{self.comparisons} comparisons, each at {percent(1 - self.alpha)}, so that all hold together at "
            f"{percent(self.confidence)} whenever the study stops; other metrics have intervals of "
            f"the same width but are not part of that promise"
        )


def family(configurations: Sequence[Configuration], deciding: Sequence[Metric], confidence: float) -> Family:
    """Return the family of a study: every configuration but the baselines, on every deciding metric."""
    return Family(len(compared(configurations)) * len(deciding), confidence)


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
    """Return the verdicts, metric by metric (deciding ones first), configuration by configuration.

    Described metrics that no pair of trials has give no verdict. ``confidence`` is that of the whole family of deciding
    comparisons, at all numbers of blocks together. ``precision`` is the half width that the intervals of deciding
    metrics should have, relative to the baseline. For ``order_matters`` see ``analysis.pairs``. With ``limited``
    verdicts also say whether a change for the worse exceeds ``smallest_effect``.
    """
    baseline = next(c.name for c in configurations if c.baseline)
    clean = clean_trials(trials)
    alpha = family(configurations, deciding, confidence).alpha
    verdicts = []
    required = _Requirement(confidence, alpha, smallest_effect)
    for metric in (*deciding, *described):
        is_deciding = metric in deciding
        metric_required = replace(required, precision=precision if is_deciding else None)
        for made in compared(configurations):
            name, reference = made.name, made.reference
            against = "" if reference == baseline else reference
            both = pairs(clean, reference, name, metric.column, order_matters=order_matters)
            estimated = effect(both, metric, alpha)
            if estimated is not None:
                verdict = _verdict(estimated, name, metric, metric_required, is_deciding)
                unseen = blind_spot(verdict.blocks, confidence) if metric.quantile is None else None
                verdict = verdict.model_copy(
                    update={"of_rounds": clean.of_rounds, "unseen": unseen, "against": against}
                )
                if limited:
                    verdict = verdict.model_copy(update=_against_limit(estimated, metric, smallest_effect, alpha))
                verdicts.append(verdict)
            elif is_deciding:
                missing = unmeasured(name, metric, confidence, _why_none(clean, (reference, name), metric.column))
                verdicts.append(missing.model_copy(update={"against": against}))
    return tuple(verdicts)


@dataclass(frozen=True)
class _Requirement:
    # The error rate `alpha` of one interval, and how narrow it should be, if that matters.
    confidence: float
    alpha: float
    smallest_effect: float
    precision: float | None = None


def _verdict(effect: Effect, configuration: str, metric: Metric, required: _Requirement, deciding: bool) -> Verdict:
    zone = margin(effect, required.smallest_effect)
    word = verdict_word(effect, metric, zone, required.alpha)
    precise = None if required.precision is None else is_precise(effect, required.precision)
    more = [more_blocks(effect, zone, required.alpha)] if word == "undecided" else []
    if required.precision and not precise:
        more.append(_more_for(effect, margin(effect, required.precision), required.alpha))
    known = [blocks for blocks in more if blocks is not None]
    return build_verdict(
        effect,
        configuration,
        metric,
        word,
        level=required.confidence,
        blocks=effect.interval.n,
        more_blocks=max(known) if known and len(known) == len(more) else None,
        deciding=deciding,
        precise=precise,
        few_trials=word == "undecided" and too_few_trials(effect) and is_within(effect, zone),
        too_coarse=word == "undecided" and is_too_coarse(effect, zone),
        reason=verdict_reason(word, effect, metric, required.smallest_effect, _so_far(effect, metric, required.alpha)),
    )


def is_precise(effect: Effect, precision: float) -> bool:
    """Return whether the interval reaches no further than ``precision`` to each side, as a share of the baseline.

    Ratios may be wrong by a factor of 1 + ``precision``, and differences from a baseline of 0 by one step of the
    figure.
    """
    return (effect.interval.high - effect.interval.low) / 2 <= (margin(effect, precision) or effect.step)


def build_verdict(effect: Effect, configuration: str, metric: Metric, word: Word, **more: Any) -> Verdict:
    """Return the verdict ``word`` with the figures of the effect that it rests on; ``more`` are its other fields."""
    return Verdict(configuration=configuration, verdict=word, **effect_fields(stated(effect, word), metric), **more)


def effect_fields(effect: Effect | None, metric: Metric) -> dict[str, Any]:
    """Return the fields of a finding on an effect; without one, that nothing is known."""
    return {
        "metric": metric.name,
        "unit": metric.unit,
        "direction": metric.direction,
        "scale": effect.scale if effect else metric.scale,
        "old": _without_rounding(effect.baseline_level) if effect else None,
        "new": _without_rounding(effect.level) if effect else None,
        "means_disagree": bool(effect and effect.averages_disagree),
        "estimate": effect.estimate if effect else None,
        "low": effect.low if effect else None,
        "high": effect.high if effect else None,
    }


def _without_rounding(figure: float | None) -> float | None:
    # Round to 12 digits: logarithms and back cost the last ones, and 100 is to stay 100.
    return None if figure is None else float(f"{figure:.12g}")


def verdict_word(effect: Effect, metric: Metric, zone: float, alpha: float = 0.05) -> Word:
    """Return the verdict in a word. ``zone`` is the half width of the zone of equivalence, see ``effects.margin``."""
    low, high = effect.interval.low, effect.interval.high
    includes_none = low <= 0 <= high
    if is_within(effect, zone):
        unseen = too_few_trials(effect) or averages_exceed(effect, zone) or effect.ends_at is not None
        return "undecided" if unseen or carries_over(effect, zone) else "equivalent"
    if includes_none or disagree(effect, zone, alpha) or carries_over(effect, zone):
        return "undecided"
    if metric.direction == "none":
        return "differs"
    return "improves" if (low > 0) == (metric.direction == "higher") else "worsens"


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
    guide this is, is simulated in ``benchmarks.verdicts`` (docs/explanation/statistics.md has the figures).
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


def limit_word(effect: Effect, metric: Metric, limit: float) -> LimitWord:
    """Return whether ``effect`` is a change for the worse by more than ``limit``, a share of the baseline.

    It is *beyond* only where the whole interval is: that it excludes zero is not enough. Of a metric without a better
    direction a change to either side counts.
    """
    bounds = _worse(effect, metric, limit)
    if any(low > limit_at for low, _, limit_at in bounds):
        return "beyond"
    return "within" if all(high <= limit_at for _, high, limit_at in bounds) else "undecided"


def _against_limit(effect: Effect, metric: Metric, limit: float, alpha: float) -> dict[str, Any]:
    word = limit_word(effect, metric, limit)
    if word != "undecided":
        return {"against_limit": word, "more_blocks": None}
    distance = min(abs((low + high) / 2 - limit_at) for low, high, limit_at in _worse(effect, metric, limit))
    if effect.rounding > 0 and distance <= effect.rounding and math.isfinite(effect.interval.half_width):
        reason = _too_coarse(effect, metric)
        return {"against_limit": word, "more_blocks": None, "too_coarse": True, "reason": reason}
    return {
        "against_limit": word,
        "more_blocks": _more_for(effect, distance, alpha) if math.isfinite(distance) else None,
    }


def _worse(effect: Effect, metric: Metric, limit: float) -> list[tuple[float, float, float]]:
    # Return for each worse side the interval, turned so that worse is higher, and the limit on the same scale.
    #
    # Unlike the zone of equivalence, a fall by 10 % is a ratio of 0.9 here, as people mean it.
    low, high = effect.interval.low, effect.interval.high
    if effect.scale == "ratio":
        rise, fall = math.log1p(limit), -math.log1p(-limit) if limit < 1 else math.inf
    else:
        rise = fall = margin(effect, limit)
    sides = {"lower": [(low, high, rise)], "higher": [(-high, -low, fall)]}
    return sides.get(metric.direction) or [*sides["lower"], *sides["higher"]]


def _so_far(effect: Effect, metric: Metric, alpha: float) -> str:
    least = fewest_blocks(alpha) if metric.quantile is None else fewest_for(metric.quantile, alpha / 2)
    if least is None:
        return f"this percentile needs more than {number(MOST_VALUES)} blocks"
    if effect.same_order and effect.interval.n >= least:
        return (
            f"the same configuration ran first in each of {count_of(effect.interval.n, 'block')}, so a drift would "
            f"look like an effect; a block in the other order is needed"
        )
    return f"{count_of(effect.interval.n, 'block')} of the {number(least)} that an interval requires"


_OTHER_STATES: Final = (
    "a state that lasts over blocks must change more often: restart servers in each trial (--service), or measure "
    "other boots (--reboots) or builds (layouts of a gate)"
)


def _alike(effect: Effect) -> str:
    blocks = count_of(effect.interval.n, "block")
    return f"neighbouring blocks resemble each other: {blocks} tell as much as {effect.independent} independent ones"


def verdict_reason(word: Word, effect: Effect, metric: Metric, smallest_effect: float, too_few: str) -> str:
    """Give the reason of a verdict in a plain sentence; ``too_few`` is it where there is no interval yet."""
    text = _finding(word, stated(effect, word), metric, smallest_effect, too_few)
    if effect.fell_back:
        text += " (compared by differences, because a value is 0 or negative)"
    return text


def _finding(word: Word, effect: Effect, metric: Metric, smallest_effect: float, too_few: str) -> str:
    def say(value: float | None) -> str:
        return change(value, effect.scale, metric.unit, like=effect.estimate)

    if effect.low is None and effect.high is None:
        return too_few
    interval = f"{say(effect.low)} to {say(effect.high)}"
    around = _zone(effect, metric, smallest_effect)
    zone = margin(effect, smallest_effect)
    if word == "undecided":
        return _doubt(effect, metric, zone, around) or _open(effect, interval, around)
    if word == "equivalent":
        if effect.interval.low > 0 or effect.interval.high < 0:
            return f"the difference, {interval}, is real but smaller than {around}"
        return f"the difference is within {around}: {interval}"
    side, near, far = (
        ("higher", effect.low, effect.high) if effect.interval.mean > 0 else ("lower", effect.high, effect.low)
    )
    by = f"{side} by {say(near).lstrip('+−')} to {say(far).lstrip('+−')}"
    if abs(effect.typical - sum(effect.mean_range) / 2) > zone:
        by += f" (typical and mean trials differ: {_apart(effect, metric)})"
    if word == "differs":
        return f"{by}; neither higher nor lower counts as better"
    return f"{by}, and {metric.direction} is better"


def _doubt(effect: Effect, metric: Metric, zone: float, around: str) -> str:
    # What forbids a verdict besides the width of the interval; empty where nothing does.
    certain = not effect.interval.low <= 0 <= effect.interval.high
    within = is_within(effect, zone)
    if effect.settled is not None and carries_over(effect, zone):
        settled = change(effect.natural(effect.settled), effect.scale, metric.unit, like=effect.estimate)
        return (
            "a trial changes the one after it: where each configuration follows itself, the change is about "
            f"{settled}; restore the state before each trial (prepare), or pause longer"
        )
    if (certain and disagree(effect, zone)) or (within and averages_exceed(effect, zone)):
        disagreement = (
            f"typical and mean trials disagree, or may: {_apart(effect, metric)}"
            if within or not effect.averages_disagree
            else f"typical and mean trials disagree: {_apart(effect, metric)}"
        )
        unit = metric.unit
        tails = (
            f"p{100 * tail.quantile:g} goes from {amount(tail.baseline, unit)} to {amount(tail.other, unit)}"
            for tail in effect.tails
        )
        return "; ".join((disagreement, *tails))
    if within and effect.ends_at is not None:
        end = amount(effect.ends_at, metric.unit)
        return (
            f"many figures are exactly {end} and none lies beyond: they seem to end there; measure without that limit"
        )
    if too_few_trials(effect) and within:
        return (
            f"alike in {count_of(effect.seen or 0, 'seed' if effect.of_seeds else 'trial')}, too few to see what "
            f"happens in fewer than {percent(SEEN)} of them; {trials_needed()} are needed"
        )
    if is_too_coarse(effect, zone):
        return _too_coarse(effect, metric)
    if effect.rates is not None and not certain and too_few_events(effect, zone):
        return _too_rare(effect, effect.rates, metric)
    if effect.same:
        times = count_of(effect.interval.n, "block")
        return f"the same in each of {times}, too few to exclude a difference of more than {around}"
    return ""


def _open(effect: Effect, interval: str, around: str) -> str:
    text = f"the interval, {interval}, includes zero and extends beyond {around}"
    return f"{text}; {_alike(effect)}; {_OTHER_STATES}" if effect.is_lasting else text


def _too_rare(effect: Effect, rates: RateRatio, metric: Metric) -> str:
    if rates.events == 0:
        times = count_of(effect.interval.n if effect.trials is None else min(map(len, effect.trials)), "trial")
        if metric.unit:
            return f"every figure is 0 in {times} of either, which bounds no ratio: print more digits, or measure more"
        return f"nothing happened in {times} of either, which bounds no ratio: measure longer trials, or more of them"
    low, high = number(rates.low), number(rates.high)
    to = f"between {low} and {high} times" if math.isfinite(rates.high) else f"at least {low} times"
    if metric.unit:
        seen = f"what is above 0 is worth only {count_of(round(rates.events), 'independent trial')}"
        return f"{seen}: the mean is {to} the baseline's; trials of 0 prove nothing"
    seen = count_of(round(rates.events), "independent event")
    return f"only {seen}: the rate is {to} the baseline's; trials without an event prove nothing"


def _apart(effect: Effect, metric: Metric) -> str:
    mean = effect.interval.mean if effect.mean_ratio is None else effect.mean_ratio
    typical, average = (
        change(effect.natural(value), effect.scale, metric.unit, like=effect.estimate)
        for value in (effect.typical, mean)
    )
    return f"the typical change is {typical}, that of means {average}"


def _too_coarse(effect: Effect, metric: Metric) -> str:
    step = amount(effect.step, metric.unit)
    part = float(f"{effect.step / abs(effect.baseline_mean):.2g}") if effect.baseline_mean else 0.0
    share = f", {percent(part)} of the baseline" if part else ""
    if effect.same:
        return f"every figure is the same, so less than a step of {step}{share} does not show; print more digits"
    return f"the figures are too coarse: they have steps of {step}{share}; print more digits"


def _zone(effect: Effect, metric: Metric, smallest_effect: float) -> str:
    zone = margin(effect, smallest_effect)
    if effect.scale == "ratio":
        return f"±{percent(smallest_effect)}"
    return f"±{amount(zone, metric.unit)} ({percent(smallest_effect)} of the baseline)"


def _why_none(clean: Clean, names: tuple[str, str], metric: str) -> str:
    measured = clean.measured
    for name in names:
        for reasons in measured.not_supported.among(clean.of(name)):
            if metric in reasons:
                return f"not supported: {reasons[metric]}"
    for name in names:
        rows = measured.of(name)
        rows = rows[~measured.warm_up[rows]]
        if len(rows) and not np.any(measured.has_status("ok")[rows]):
            reason, _ = Counter(measured.reason[row] for row in rows).most_common(1)[0]
            return f"no clean trial of {name}: {reason}"
    if len(clean):
        return "no block has this metric under both the baseline and this configuration"
    return "nothing was measured yet"


def unmeasured(configuration: str, metric: Metric, confidence: float, reason: str, *, deciding: bool = True) -> Verdict:
    """Return the verdict where there is nothing to compare, for that ``reason``."""
    return Verdict(
        configuration=configuration,
        verdict="undecided",
        **effect_fields(None, metric),
        level=confidence,
        blocks=0,
        deciding=deciding,
        reason=reason,
    )

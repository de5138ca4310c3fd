"""Verdicts: every configuration against the baseline, on every metric."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ajuste.analysis.pairs import Clean, Trials, clean_trials, pairs
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, compared
from ajuste.model.verdict import Verdict
from ajuste.model.wording import amount, change, count_of, number, percent
from ajuste_stats.confidence_sequences import MOST_VALUES
from ajuste_stats.decision import (
    blocks_for_interval,
    decide,
    decide_limit,
    doubt,
    is_too_coarse,
    is_within,
    stated,
    too_few_trials,
    trials_needed,
)
from ajuste_stats.effects import Effect, effect, margin
from ajuste_stats.multiplicity import bonferroni
from ajuste_stats.rare_counts import RateRatio
from ajuste_stats.sign_intervals import blind_spot
from ajuste_stats.terms import SEEN, Word


@dataclass(frozen=True)
class Family:
    """The comparisons that decide a study, which together hold with ``confidence`` (Bonferroni's inequality)."""

    comparisons: int
    confidence: float

    @property
    def alpha(self) -> float:
        """Return the error rate of one interval of the family."""
        return bonferroni(self.confidence, self.comparisons)

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
    smallest_effect, alpha = required.smallest_effect, required.alpha
    decision = decide(effect, metric, smallest_effect=smallest_effect, alpha=alpha, precision=required.precision)
    word, zone = decision.word, margin(effect, smallest_effect)
    return build_verdict(
        effect,
        configuration,
        metric,
        word,
        level=required.confidence,
        blocks=effect.interval.n,
        more_blocks=decision.more_blocks,
        deciding=deciding,
        precise=decision.precise,
        few_trials=word == "undecided" and too_few_trials(effect) and is_within(effect, zone),
        too_coarse=word == "undecided" and is_too_coarse(effect, zone),
        reason=verdict_reason(word, effect, metric, smallest_effect, _so_far(effect, metric, alpha)),
    )


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


def _against_limit(effect: Effect, metric: Metric, limit: float, alpha: float) -> dict[str, Any]:
    decision = decide_limit(effect, metric, limit, alpha)
    fields = {"against_limit": decision.word, "more_blocks": decision.more_blocks}
    if decision.too_coarse:
        return {**fields, "too_coarse": True, "reason": _too_coarse(effect, metric)}
    return fields


def _so_far(effect: Effect, metric: Metric, alpha: float) -> str:
    least = blocks_for_interval(metric, alpha)
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
    match doubt(effect, metric, zone):
        case "carry-over" if effect.settled is not None:
            settled = change(effect.natural(effect.settled), effect.scale, metric.unit, like=effect.estimate)
            return (
                "a trial changes the one after it: where each configuration follows itself, the change is about "
                f"{settled}; restore the state before each trial (prepare), or pause longer"
            )
        case "averages":
            disagreement = (
                f"typical and mean trials disagree, or may: {_apart(effect, metric)}"
                if is_within(effect, zone) or not effect.averages_disagree
                else f"typical and mean trials disagree: {_apart(effect, metric)}"
            )
            unit = metric.unit
            tails = (
                f"p{100 * tail.quantile:g} goes from {amount(tail.baseline, unit)} to {amount(tail.other, unit)}"
                for tail in effect.tails
            )
            return "; ".join((disagreement, *tails))
        case "end" if effect.ends_at is not None:
            end = amount(effect.ends_at, metric.unit)
            return (
                f"many figures are exactly {end} and none lies beyond: they seem to end there; measure without that "
                "limit"
            )
        case "few trials":
            return (
                f"alike in {count_of(effect.seen or 0, 'seed' if effect.of_seeds else 'trial')}, too few to see what "
                f"happens in fewer than {percent(SEEN)} of them; {trials_needed()} are needed"
            )
        case "coarse":
            return _too_coarse(effect, metric)
        case "few events" if effect.rates is not None:
            return _too_rare(effect, effect.rates, metric)
        case "same":
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

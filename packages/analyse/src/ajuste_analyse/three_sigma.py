"""The 3-sigma rule, as many people compare by it, beside the verdicts.

The rule: nearly all values lie within three standard deviations of their mean (at most one in twenty of any unimodal
distribution does not: Vysochanskij and Petunin; Pukelsheim 1994, "The Three Sigma Rule", The American Statistician
48(2), 88-91). As a comparison: two means are called different where they are further apart than three standard
deviations of their difference, √(s₁² + s₂²). It is used in two forms, distinguished here: with the standard
deviations of single values, and with those of the means, s/√n.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import scipy

from ajuste.analysis.pairs import Trials, clean_trials, pairs
from ajuste.analysis.summary import summarise
from ajuste.analysis.verdict import family
from ajuste.model.metric import Metric
from ajuste.model.results import Summary
from ajuste.model.three_sigma import ThreeSigma
from ajuste.model.trial import Configuration, compared
from ajuste.model.verdict import Verdict
from ajuste.model.wording import percent
from ajuste_stats.terms import Word
from ajuste_stats.three_sigma import SIGMAS, Rule, apply_rule, chance, pairing_gain

_DIFFERENT: Final[frozenset[Word]] = frozenset({"improves", "worsens", "differs"})


def three_sigma(
    configurations: Sequence[Configuration],
    trials: Trials,
    deciding: Sequence[Metric],
    verdicts: Sequence[Verdict],
    confidence: float,
) -> tuple[ThreeSigma, ...]:
    """Return a row for each configuration on each deciding metric, the baseline's without a comparison.

    ``confidence`` is that of the family of ``verdicts``. Configurations without a clean trial have no row.
    """
    clean = clean_trials(trials)
    references = {made.name: made.reference for made in compared(configurations)}
    verdict_by_key = {(v.configuration, v.metric): v for v in verdicts}
    comparisons = family(configurations, deciding, confidence).comparisons
    rows = []
    for metric in deciding:
        for configuration in configurations:
            values = clean.values(configuration.name, metric.name)
            if not len(values):
                continue
            row = uncompared_row(configuration.name, metric, summarise(values))
            reference = references.get(configuration.name, "")
            verdict = verdict_by_key.get((configuration.name, metric.name))
            first = clean.values(reference, metric.name) if reference else values[:0]
            if len(first) and verdict is not None:
                narrowing = pairing_gain(pairs(clean, reference, configuration.name, metric.name))
                early = _too_early(verdict.blocks, comparisons)
                row = compare_row(
                    row, summarise(first), summarise(values), verdict, narrowing=narrowing, too_early=early
                )
            rows.append(row)
    return tuple(rows)


def uncompared_row(configuration: str, metric: Metric, summary: Summary) -> ThreeSigma:
    """Return the row of a configuration, not yet compared with the baseline."""
    return ThreeSigma(
        configuration=configuration,
        metric=metric.name,
        n=summary.n,
        mean=summary.mean,
        values=_range(summary.mean, summary.sd),
        means=_range(summary.mean, summary.sem),
    )


def compare_row(
    row: ThreeSigma, first: Summary, other: Summary, verdict: Verdict, *, narrowing: float, too_early: str
) -> ThreeSigma:
    """Return ``row`` beside the baseline's summary ``first`` and the verdict.

    ``narrowing`` is the factor by which comparing within blocks narrows the standard deviation of the difference;
    ``too_early`` says why the rule sees a difference where there is no verdict yet.
    """
    rule = _apply_rule(first, other)
    why = _why(rule, verdict, narrowing, too_early)
    return row.model_copy(
        update={
            "values_differ": rule.values,
            "means_differ": rule.averages,
            "verdict": verdict.verdict,
            "disagrees": bool(why),
            "why": why,
        }
    )


def _range(mean: float, sd: float | None) -> tuple[float, float] | None:
    return None if sd is None else (mean - SIGMAS * sd, mean + SIGMAS * sd)


def _apply_rule(first: Summary, other: Summary) -> Rule:
    if first.sd is None or other.sd is None:
        return Rule(None, None)
    return apply_rule((first.mean, first.sd, first.n), (other.mean, other.sd, other.n))


def _why(rule: Rule, verdict: Verdict, narrowing: float, too_early: str) -> str:
    if rule.values is None or rule.averages is None:
        return ""
    differs = verdict.verdict in _DIFFERENT
    if differs and not rule.averages:
        return _missed(narrowing)
    if differs and not rule.values:
        return (
            "The spread of single values hides the difference from the rule. That spread does not shrink with more "
            "blocks, while the mean becomes more precise."
        )
    if verdict.verdict == "equivalent" and rule.averages:
        return "There is a difference, but it is too small to matter: the rule does not consider its size."
    if verdict.verdict == "undecided" and rule.averages:
        return too_early
    return ""


def _missed(narrowing: float) -> str:
    if narrowing > 1:
        return (
            "Drift from block to block widens the standard deviations that the rule uses; it cancels when trials of "
            "the same block are compared."
        )
    return "The rule requires more certainty than the verdict's confidence."


def _too_early(blocks: int, comparisons: int) -> str:
    by_chance = chance(blocks)
    many = f", in each of {comparisons} comparisons" if comparisons > 1 else ""
    return (
        f"With {blocks} values the standard deviations are themselves uncertain: the rule finds a difference where "
        f"there is none in {percent(float(f'{by_chance:.1g}'))} of such samples{many}, and again at every look after a "
        f"further block. The verdict allows for all of that."
    )


def fixed_chance(n: tuple[int, int], freedom: float, comparisons: int) -> str:
    """Say how often the rule errs on two samples of ``n`` values; ``freedom`` are Welch's degrees of freedom."""
    many = f", in each of {comparisons} comparisons" if comparisons > 1 else ""
    share = percent(float(f"{2 * scipy.special.stdtr(freedom, -SIGMAS):.1g}"))
    return (
        f"With {n[0]:,} and {n[1]:,} values the standard deviations are themselves uncertain: the rule finds a "
        f"difference where there is none in {share} of such samples{many}. The verdict allows for all of that."
    )

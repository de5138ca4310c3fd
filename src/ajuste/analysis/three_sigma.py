"""The 3-sigma rule, as many people compare by it, beside the verdicts.

The rule: nearly all values lie within three standard deviations of their mean (at most one in twenty of any unimodal
distribution does not: Vysochanskij and Petunin; Pukelsheim 1994, "The Three Sigma Rule", The American Statistician
48(2), 88-91). As a comparison: two means are called different where they are further apart than three standard
deviations of their difference, √(s₁² + s₂²). It is used in two forms, distinguished here: with the standard
deviations of single values, and with those of the means, s/√n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import stdtr

from ajuste.analysis.pairs import Clean, Trials, clean_trials, pairs
from ajuste.analysis.summary import summarise
from ajuste.analysis.verdict import family
from ajuste.model.metric import Metric
from ajuste.model.results import Summary, ThreeSigma
from ajuste.model.trial import Configuration
from ajuste.model.verdict import Verdict, Word
from ajuste.model.wording import percent

SIGMAS: Final = 3.0
_DIFFERENT: Final[frozenset[Word]] = frozenset({"improves", "worsens", "differs"})


@dataclass(frozen=True)
class _Rule:
    """What the rule says of two samples; ``None`` below two values in either."""

    values: bool | None
    means: bool | None


def three_sigma(
    configurations: Sequence[Configuration],
    trials: Trials,
    deciding: Sequence[Metric],
    verdicts: Sequence[Verdict],
    confidence: float,
) -> tuple[ThreeSigma, ...]:
    """A row for each configuration on each deciding metric, the baseline's without a comparison.

    ``confidence`` is that of the family of ``verdicts``. Configurations without a clean trial have no row.
    """
    clean = clean_trials(trials)
    baseline = next(c for c in configurations if c.baseline)
    said = {(v.configuration, v.metric): v for v in verdicts}
    comparisons = family(configurations, deciding, confidence).comparisons
    rows = []
    for metric in deciding:
        first = clean.values(baseline.name, metric.name)
        for configuration in configurations:
            own = clean.values(configuration.name, metric.name)
            if not len(own):
                continue
            row = row_of(configuration.name, metric, summarise(own))
            verdict = said.get((configuration.name, metric.name))
            if len(first) and verdict is not None:
                narrowing = _narrowing(clean, baseline.name, configuration.name, metric)
                early = _too_early(verdict.blocks, comparisons)
                row = compared(row, summarise(first), summarise(own), verdict, narrowing=narrowing, too_early=early)
            rows.append(row)
    return tuple(rows)


def row_of(configuration: str, metric: Metric, summary: Summary) -> ThreeSigma:
    """The row of a configuration, not yet compared with anything."""
    return ThreeSigma(
        configuration=configuration,
        metric=metric.name,
        n=summary.n,
        mean=summary.mean,
        values=_range(summary.mean, summary.sd),
        means=_range(summary.mean, summary.sem),
    )


def compared(
    row: ThreeSigma, first: Summary, own: Summary, verdict: Verdict, *, narrowing: float, too_early: str
) -> ThreeSigma:
    """``row`` beside the baseline's summary ``first`` and the verdict.

    ``narrowing`` is by what factor comparing within blocks narrows the standard deviation of the difference;
    ``too_early`` says why the rule finds differences where there is no verdict yet.
    """
    rule = _compare(first, own)
    why = _why(rule, verdict, narrowing, too_early)
    return row.model_copy(
        update={
            "values_differ": rule.values,
            "means_differ": rule.means,
            "verdict": verdict.verdict,
            "disagrees": bool(why),
            "why": why,
        }
    )


def _range(mean: float, sd: float | None) -> tuple[float, float] | None:
    return None if sd is None else (mean - SIGMAS * sd, mean + SIGMAS * sd)


def _compare(one: Summary, other: Summary) -> _Rule:
    if one.sd is None or other.sd is None or one.sem is None or other.sem is None:
        return _Rule(None, None)
    apart = abs(one.mean - other.mean)
    return _Rule(
        values=apart > SIGMAS * math.hypot(one.sd, other.sd), means=apart > SIGMAS * math.hypot(one.sem, other.sem)
    )


def _narrowing(clean: Clean, baseline: str, other: str, metric: Metric) -> float:
    """By what factor comparing within blocks narrows the standard deviation of the difference; 1 where it is not
    known.
    """
    found = pairs(clean, baseline, other, metric.name)
    if len(found) < 2:
        return 1.0
    paired = float(np.std(found.other - found.baseline, ddof=1))
    unpaired = math.hypot(float(np.std(found.baseline, ddof=1)), float(np.std(found.other, ddof=1)))
    return unpaired / paired if paired > 0 else math.inf if unpaired > 0 else 1.0


def _why(rule: _Rule, verdict: Verdict, narrowing: float, too_early: str) -> str:
    """Why rule and verdict disagree; empty where they do not."""
    if rule.values is None or rule.means is None:
        return ""
    differs = verdict.verdict in _DIFFERENT
    if differs and not rule.means:
        return _missed(narrowing)
    if differs and not rule.values:
        return (
            "The spread of single values hides the difference from the rule. That spread does not shrink with more "
            "blocks, while the mean becomes more precise."
        )
    if verdict.verdict == "equivalent" and rule.means:
        return "There is a difference, but it is too small to matter: the rule does not consider its size."
    if verdict.verdict == "undecided" and rule.means:
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
    """As said of samples of ``n`` values each whose size is fixed; ``freedom`` are Welch's degrees of freedom."""
    many = f", in each of {comparisons} comparisons" if comparisons > 1 else ""
    share = percent(float(f"{2 * stdtr(freedom, -SIGMAS):.1g}"))
    return (
        f"With {n[0]:,} and {n[1]:,} values the standard deviations are themselves uncertain: the rule finds a "
        f"difference where there is none in {share} of such samples{many}. The verdict allows for all of that."
    )


def chance(n: int) -> float:
    """How often the rule with the standard deviations of the means calls two samples of ``n`` values different that
    come from one normal distribution: Student's t beyond ±3 with 2n − 2 degrees of freedom.
    """
    return float(2 * stdtr(2 * n - 2, -SIGMAS))

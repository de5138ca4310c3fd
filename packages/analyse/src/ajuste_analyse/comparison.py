"""Verdicts for results that were measured elsewhere: their size is fixed, so fixed-sample inference is right.

Where both configurations name blocks, values of the same block are compared; otherwise the samples as a whole. See
``ajuste_stats.fixed_samples`` for the intervals and their sources.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.verdict import build_verdict, unmeasured, verdict_reason
from ajuste.model.measurements import MeasuredTable, Sample, Summarised, Values
from ajuste.model.metric import Metric
from ajuste.model.verdict import Verdict
from ajuste.model.wording import amount, change, count_of, number, percent, sentence_start
from ajuste_stats import fixed_comparison as statistics
from ajuste_stats.decision import is_too_coarse, verdict_word
from ajuste_stats.effects import Effect, margin
from ajuste_stats.fixed_comparison import FixedComparison, Moments, average_units, compare_moments, compare_pairs
from ajuste_stats.fixed_samples import (
    MOST_VALUES,
    FixedContrast,
    moments,
    values_needed,
)
from ajuste_stats.sign_intervals import blind_spot
from ajuste_stats.terms import SEEN, Scale, Word


def not_evidence(
    contrast: FixedContrast,
    spreads: tuple[float, ...],
    n: tuple[int, int],
    alpha: float,
    *,
    scale: Scale,
    unit: str,
    estimate: float | None,
    level: str = "",
) -> str:
    """Say why a difference is no evidence: beside its standard error and chance, and what it would have taken.

    ``estimate`` is it as a ratio or a difference; one of ``spreads`` is of pairs. ``level`` as in ``Comparison``.
    """
    paired = len(spreads) == 1
    error = f"{number(100 * contrast.error)} %" if scale == "ratio" else amount(contrast.error, unit)
    values = f"{number(n[0])} blocks" if paired else f"{number(n[0])} and {count_of(n[1], level or 'value')}"
    times = number(abs(contrast.difference) / contrast.error)
    chance = float(f"{contrast.p_value:.2g}")
    first = (
        f"The difference, {change(estimate, scale, unit)}, is {times} times its "
        f"standard error ({error}): from {values} that spread as these do, chance alone gives one at least as large "
        f"in {percent(chance)} of cases (p = {chance:g})."
    )
    return f"{first} {_taken(contrast.difference, spreads, alpha)}"


def _taken(difference: float, spreads: tuple[float, ...], alpha: float) -> str:
    needed = values_needed(difference, spreads, alpha)
    what = "blocks" if len(spreads) == 1 else "values of each"
    limit = f"Here a difference is significant below p = {float(f'{alpha:.2g}'):g}"
    if difference == 0:
        return f"{limit}, and no number of {what} shows a difference of 0."
    count = f"more than {number(MOST_VALUES)}" if needed is None else f"about {number(needed)}"
    return (
        f"{limit}; it would have taken {count} {what} to see a difference of this size in nine of ten such comparisons."
    )


Basis = Literal["blocks", "samples", "summaries"]
_TOO_FEW: Final = "a single value has no spread, so no difference can be judged"


@dataclass(frozen=True)
class Comparison:
    """A comparison of a configuration with the baseline, and on what kind of values it rests.

    ``left_out`` counts values of blocks that only one of the configurations has. ``level`` is the kind of unit whose
    means were compared (*fork*, *process*, *file*), empty where it is the values themselves.
    """

    fixed: FixedComparison
    basis: Basis
    left_out: int = 0
    level: str = ""

    @property
    def effect(self) -> Effect:
        """Return the effect of the configuration."""
        return self.fixed.effect


def count_comparisons(table: MeasuredTable, baseline: str, metrics: Collection[str]) -> int:
    """Count the comparisons: every configuration but the baseline, on each of ``metrics`` that both have."""
    return sum(
        (baseline, metric) in table.samples and (name, metric) in table.samples
        for metric in metrics
        for name in table.configurations
        if name != baseline
    )


def compare_table(table: MeasuredTable, baseline: str, alpha: float) -> dict[tuple[str, str], Comparison]:
    """Compare every configuration but the ``baseline`` on every metric that both have, by configuration and metric."""
    comparisons = {}
    for metric in table.metrics:
        first = table.samples.get((baseline, metric.name))
        for name in table.configurations:
            second = table.samples.get((name, metric.name))
            if name != baseline and first is not None and second is not None:
                comparisons[name, metric.name] = compare_samples(first, second, metric, alpha)
    return comparisons


def compare_samples(first: Sample, second: Sample, metric: Metric, alpha: float) -> Comparison:
    """Compare ``second`` with ``first`` (the baseline), with an interval of error rate ``alpha``."""
    if isinstance(first, Values) and isinstance(second, Values):
        return _compare_values(first, second, metric, alpha)
    baseline, changed = (_moments(summarise_sample(side)) for side in (first, second))
    return Comparison(compare_moments(baseline, changed, metric, alpha), "summaries")


def _moments(sample: Summarised) -> Moments:
    return Moments(sample.mean, sample.sem, sample.n)


def summarise_sample(sample: Sample) -> Summarised:
    """Summarise the units of a sample; the standard error is NaN below two of them."""
    if isinstance(sample, Summarised):
        return sample
    mean, sem, n = moments(average_units(np.array(sample.values), _unit_places(sample)))
    return Summarised(n, mean, sem)


def _compare_values(first: Values, second: Values, metric: Metric, alpha: float) -> Comparison:
    if first.blocks and second.blocks:
        by_block, others_by_block = _by_block(first), _by_block(second)
        common = [name for name in by_block if name in others_by_block]
        if common:
            baseline, changed = (np.array([table[name] for name in common]) for table in (by_block, others_by_block))
            left_out = _without_partner(first, second) + _without_partner(second, first)
            return Comparison(compare_pairs(baseline, changed, metric, alpha), "blocks", left_out)
    baseline, changed = np.array(first.values), np.array(second.values)
    level = first.level or second.level
    units = (_unit_places(first), _unit_places(second)) if level else None
    return Comparison(statistics.compare_samples(baseline, changed, metric, alpha, units), "samples", level=level)


def _unit_places(sample: Values) -> NDArray[np.int64]:
    # The unit of each value; without units each is one.
    _, places = np.unique(sample.units, return_inverse=True) if sample.units else (None, np.arange(len(sample.values)))
    return np.asarray(places, np.int64)


def _without_partner(sample: Values, other: Values) -> int:
    partners = set(other.blocks)
    return sum(block not in partners for block in sample.blocks)


def _by_block(sample: Values) -> dict[str, float]:
    once = dict(zip(sample.blocks, sample.values, strict=True))
    if len(once) == len(sample.blocks):
        return once
    by_block: dict[str, list[float]] = {}
    for block, value in zip(sample.blocks, sample.values, strict=True):
        by_block.setdefault(block, []).append(value)
    return {block: math.fsum(values) / len(values) for block, values in by_block.items()}


def judge_comparison(
    comparison: Comparison,
    configuration: str,
    metric: Metric,
    *,
    confidence: float,
    alpha: float,
    smallest_effect: float,
    deciding: bool,
) -> Verdict:
    """Return the verdict; ``alpha`` is its share of the family's error rate, 1 − ``confidence``."""
    effect = comparison.effect
    word = verdict_word(effect, metric, margin(effect, smallest_effect))
    p_value = comparison.fixed.contrast.p_value
    return build_verdict(
        effect,
        configuration,
        metric,
        word,
        level=confidence,
        blocks=comparison.fixed.n[0] if comparison.basis == "blocks" else 0,
        values=None if comparison.basis == "blocks" else comparison.fixed.n,
        p_value=None if math.isnan(p_value) else p_value,
        typical=comparison.fixed.typical if word == "undecided" else None,
        unseen=None if comparison.basis == "summaries" else blind_spot(min(comparison.fixed.n), confidence),
        too_coarse=word == "undecided" and is_too_coarse(effect, margin(effect, smallest_effect)),
        deciding=deciding,
        reason=_reason(comparison, word, metric, alpha, smallest_effect),
    )


def without_partner(configuration: str, metric: Metric, confidence: float, lacking: str, deciding: bool) -> Verdict:
    """Return the verdict where one of the two, ``lacking``, has no value of the metric."""
    reason = f"{lacking} has no value of it, so there is nothing to compare"
    return unmeasured(configuration, metric, confidence, reason, deciding=deciding)


def _reason(comparison: Comparison, word: Word, metric: Metric, alpha: float, smallest_effect: float) -> str:
    effect, contrast = comparison.effect, comparison.fixed.contrast
    coarse = is_too_coarse(effect, margin(effect, smallest_effect))
    if word == "undecided" and contrast.error > 0 and contrast.p_value >= alpha and not coarse:
        evidence = not_evidence(
            contrast,
            comparison.fixed.spreads,
            comparison.fixed.n,
            alpha,
            scale=effect.scale,
            unit=metric.unit,
            estimate=effect.estimate,
            level=comparison.level,
        )
        fell_back = " Compared by differences, because a value is 0 or negative." if effect.fell_back else ""
        if comparison.fixed.typical is not None:
            typical = change(comparison.fixed.typical, effect.scale, metric.unit)
            evidence = f"Typical values differ by their ranks ({typical}); far values leave the mean open. {evidence}"
        left_out = _left_out(comparison)
        return evidence + fell_back + (f" {sentence_start(left_out)}." if comparison.left_out else "")
    too_few = f"{_single_unit(comparison.level)}, so no difference can be judged" if comparison.level else _TOO_FEW
    return f"{verdict_reason(word, effect, metric, smallest_effect, too_few)} ({_from(comparison)})"


def blind_notes(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Return a note of what the fewest values behind a difference cannot show."""
    few = [v for v in verdicts if v.deciding and not v.is_undecided and v.unseen is not None and v.unseen > SEEN]
    return (max(few, key=lambda v: v.unseen or 0.0).cannot_see,) if few else ()


def comparison_notes(comparisons: Mapping[tuple[str, str], Comparison], deciding: Collection[str]) -> tuple[str, ...]:
    """Return a note for each configuration whose values come from a single unit of replication, and for those of whose
    blocks some have no partner.
    """
    notes = set()
    for (name, metric), comparison in comparisons.items():
        if metric in deciding and comparison.level and min(comparison.fixed.n) == 1:
            notes.add(f"Cannot judge {name}: {_single_unit(comparison.level)}.")
        if metric in deciding and comparison.left_out:
            compared = count_of(comparison.fixed.n[0], "block")
            notes.add(f"{name} is compared in {compared}; {_left_out(comparison)}.")
    return tuple(sorted(notes))


def _single_unit(level: str) -> str:
    several = {"fork": "-f 5", "process": "several runs, each a process"}.get(level, f"several {level}s")
    return f"only one {level}: what differs from {level} to {level} is unknown (measure with {several})"


def _left_out(comparison: Comparison) -> str:
    return f"not in it: {count_of(comparison.left_out, 'value')} of blocks that only one of them has"


def _from(comparison: Comparison) -> str:
    count, other_count = comparison.fixed.n
    if comparison.basis == "blocks":
        left = f"; {_left_out(comparison)}" if comparison.left_out else ""
        return f"{count_of(count, 'block')}, compared within blocks{left}"
    if comparison.level:
        return f"means of {count_of(count, comparison.level)} and {count_of(other_count, comparison.level)}, not paired"
    kind = "means" if comparison.basis == "summaries" else "samples"
    return f"{kind} of {count_of(count, 'value')} and {count_of(other_count, 'value')}, not paired"

"""Verdicts for results that were measured elsewhere: their size is fixed, and so fixed-sample inference is right.

Where both configurations name blocks, values of the same block are compared; otherwise the samples as a whole. See
``analysis.effects`` for the intervals and their sources.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from scipy.special import nctdtr, ndtri, stdtrit

from ajuste.analysis.effects import (
    SMALLEST_RELATIVE_STEP,
    Array,
    Effect,
    FixedContrast,
    margin,
    moments,
    of_log_means,
    of_means,
    paired,
    unpaired,
)
from ajuste.analysis.sequence import Interval
from ajuste.analysis.verdict import of_effect, reason_of, unmeasured, word_of
from ajuste.model.measurements import MeasuredTable, Sample, Summarised, Values
from ajuste.model.metric import Metric, Scale
from ajuste.model.verdict import Verdict, Word
from ajuste.model.wording import amount, change, count_of, number, percent

# Why a difference is no evidence: beside its standard error, beside chance, and how many values it would have taken.
#
# The numbers of values are those of the t test's power: Cohen 1988, "Statistical Power Analysis for the Behavioral
# Sciences", 2nd ed., section 2.4; exact by the noncentral t distribution (Johnson and Welch 1940, "Applications of the
# non-central t-distribution", Biometrika 31).


POWER: Final = 0.9
MOST_VALUES: Final = 1_000_000
"""Beyond this many values a prediction is not worth giving."""


def values_needed(difference: float, spreads: tuple[float, ...], alpha: float, power: float = POWER) -> int | None:
    """How many values of each sample tell ``difference`` from none with this ``power``, two-sided at ``alpha``.

    ``spreads`` are the standard deviations of the two samples, or the one of paired differences, in the unit of
    ``difference``. ``None`` beyond ``MOST_VALUES``.
    """
    variance = math.fsum(spread**2 for spread in spreads)
    if difference == 0 or variance == 0:
        return None
    z = ndtri(1 - alpha / 2) + ndtri(power)
    normal = float(variance * (z / difference) ** 2)  # what it would take were the spread known
    if normal > MOST_VALUES:
        return None
    share = variance**2 / math.fsum(spread**4 for spread in spreads)
    n = max(2, math.floor(normal))
    while _power(difference, variance, share * (n - 1), n, alpha) < power:
        n += 1
    return n


def _power(difference: float, variance: float, freedom: float, n: int, alpha: float) -> float:
    apart = abs(difference) / math.sqrt(variance / n)
    critical = stdtrit(freedom, 1 - alpha / 2)
    return float(1 - nctdtr(freedom, apart, critical))


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
    """Two sentences on a difference that is known no better than this. ``estimate`` is it as a ratio or a difference;
    one of ``spreads`` is of pairs. ``level`` as in ``Comparison``.
    """
    paired = len(spreads) == 1
    error = f"{number(100 * contrast.error)} %" if scale == "ratio" else amount(contrast.error, unit)
    of = f"{number(n[0])} blocks" if paired else f"{number(n[0])} and {count_of(n[1], level or 'value')}"
    times = number(abs(contrast.difference) / contrast.error)
    chance = float(f"{contrast.p_value:.2g}")
    first = (
        f"The difference, {change(estimate, scale, unit)}, is {times} times its "
        f"standard error ({error}): from {of} that spread as these do, chance alone gives one at least as large "
        f"in {percent(chance)} of cases (p = {chance:g})."
    )
    return f"{first} {_taken(contrast.difference, spreads, alpha)}"


def _taken(difference: float, spreads: tuple[float, ...], alpha: float) -> str:
    needed = values_needed(difference, spreads, alpha)
    what = "blocks" if len(spreads) == 1 else "values of each"
    asked = f"Here a difference is significant below p = {float(f'{alpha:.2g}'):g}"
    if difference == 0:
        return f"{asked}, and no number of {what} shows a difference of 0."
    count = f"more than {number(MOST_VALUES)}" if needed is None else f"about {number(needed)}"
    return (
        f"{asked}; it would have taken {count} {what} to see a difference of this size in nine of ten such comparisons."
    )


Basis = Literal["blocks", "samples", "summaries"]
_TOO_FEW: Final = "a single value has no spread, so no difference can be judged"


@dataclass(frozen=True)
class Comparison:
    """The effect of a configuration, and on how many values (or blocks) of what kind it rests.

    ``spreads`` are the standard deviations of both samples on the effect's scale, or the one of the differences within
    blocks; ``left_out`` counts values of blocks that only one of the configurations has. ``level`` is the kind of unit
    whose means were compared (``fork``, ``process``, ``file``), empty where it is the values themselves.
    """

    effect: Effect
    contrast: FixedContrast
    basis: Basis
    n: tuple[int, int]
    spreads: tuple[float, ...]
    left_out: int = 0
    level: str = ""


def family_of(table: MeasuredTable, baseline: str, metrics: Collection[str]) -> int:
    """How many comparisons there are: every configuration but the baseline, on each of ``metrics`` that both have."""
    return sum(
        (baseline, metric) in table.samples and (name, metric) in table.samples
        for metric in metrics
        for name in table.configurations
        if name != baseline
    )


def comparisons_of(table: MeasuredTable, baseline: str, alpha: float) -> dict[tuple[str, str], Comparison]:
    """Every configuration but the ``baseline`` on every metric that both have, by configuration and metric."""
    found = {}
    for metric in table.metrics:
        first = table.samples.get((baseline, metric.name))
        for name in table.configurations:
            second = table.samples.get((name, metric.name))
            if name != baseline and first is not None and second is not None:
                found[name, metric.name] = compare(first, second, metric, alpha)
    return found


def compare(first: Sample, second: Sample, metric: Metric, alpha: float) -> Comparison:
    """``second`` against ``first`` (the baseline), with an interval of error rate ``alpha``."""
    if isinstance(first, Values) and isinstance(second, Values):
        return _compare_values(first, second, metric, alpha)
    one, other = summary_of(first), summary_of(second)
    positive = one.mean > 0 and other.mean > 0
    scale: Scale = "ratio" if metric.scale == "ratio" and positive else "difference"
    contrast = (of_log_means if scale == "ratio" else of_means)(
        one.mean, one.sem, one.n, other.mean, other.sem, other.n
    )
    spreads = tuple(_deviation(each, relative=scale == "ratio") for each in (one, other))
    effect = _effect(contrast, scale, metric, alpha, (one.mean, other.mean))
    return Comparison(effect, contrast, "summaries", (one.n, other.n), spreads)


def _deviation(sample: Summarised, *, relative: bool) -> float:
    deviation = sample.sem * math.sqrt(sample.n)
    return deviation / sample.mean if relative else deviation


def summary_of(sample: Sample) -> Summarised:
    """Any sample as a summary of its units; its standard error is NaN below two of them."""
    if isinstance(sample, Summarised):
        return sample
    mean, sem, n = moments(_unit_means(np.array(sample.values), sample.units))
    return Summarised(n, mean, sem)


def _compare_values(first: Values, second: Values, metric: Metric, alpha: float) -> Comparison:
    one, other = np.array(first.values), np.array(second.values)
    means = (float(np.mean(one)), float(np.mean(other)))
    basis: Basis = "samples"
    left_out = 0
    if first.blocks and second.blocks:
        common = _common(first, second)
        if len(common[0]):
            (one, other), basis = common, "blocks"
            left_out = _without_partner(first, second) + _without_partner(second, first)
            means = (float(np.mean(one)), float(np.mean(other)))
    positive = bool(np.all(one > 0) and np.all(other > 0))
    scale: Scale = "ratio" if metric.scale == "ratio" and positive else "difference"
    left, right = (np.log(one), np.log(other)) if scale == "ratio" else (one, other)
    level = "" if basis == "blocks" else first.level or second.level
    if level:
        left, right = _unit_means(left, first.units), _unit_means(right, second.units)
    contrast = paired(left, right) if basis == "blocks" else unpaired(left, right)
    samples = (right - left,) if basis == "blocks" else (left, right)
    spreads = tuple(float(np.std(sample, ddof=1)) if len(sample) > 1 else math.nan for sample in samples)
    typical = math.exp(float(np.mean(left))) if scale == "ratio" else float(np.mean(left))
    effect = replace(
        _effect(contrast, scale, metric, alpha, means),
        baseline_level=typical,
        means_ratio=math.log(means[1] / means[0]) if scale == "ratio" else None,
        trials=(one, other),
    )
    return Comparison(effect, contrast, basis, (len(left), len(right)), spreads, left_out, level)


def _unit_means(values: Array, units: tuple[str, ...]) -> Array:
    """The mean of each unit of replication: values of one unit are not independent."""
    if not units:
        return values
    _, places = np.unique(units, return_inverse=True)
    return np.asarray(np.bincount(places, values) / np.bincount(places))


def _without_partner(sample: Values, other: Values) -> int:
    partners = set(other.blocks)
    return sum(block not in partners for block in sample.blocks)


def _common(first: Values, second: Values) -> tuple[Array, Array]:
    """The mean of each block that both have, in the order of the first's."""
    one, other = _by_block(first), _by_block(second)
    names = [name for name in one if name in other]
    return np.array([one[name] for name in names]), np.array([other[name] for name in names])


def _by_block(sample: Values) -> dict[str, float]:
    once = dict(zip(sample.blocks, sample.values, strict=True))
    if len(once) == len(sample.blocks):
        return once
    found: dict[str, list[float]] = {}
    for block, value in zip(sample.blocks, sample.values, strict=True):
        found.setdefault(block, []).append(value)
    return {block: math.fsum(values) / len(values) for block, values in found.items()}


def _effect(contrast: FixedContrast, scale: Scale, metric: Metric, alpha: float, means: tuple[float, float]) -> Effect:
    baseline, other = means
    step = metric.resolution or SMALLEST_RELATIVE_STEP * max(abs(baseline), abs(other))
    # Values that are all alike are known no better than a step of the figure (Sheppard's correction).
    floor = step / math.sqrt(6)
    if scale == "ratio":
        floor /= min(baseline, other)
    half = math.inf if math.isnan(contrast.error) else max(contrast.half_width(alpha), floor)
    return Effect(
        scale=scale,
        interval=Interval(round(contrast.freedom) + 1, contrast.difference, contrast.error**2, half),
        baseline_mean=baseline,
        step=step,
        same=contrast.difference == 0 and contrast.error == 0,
        fell_back=metric.scale == "ratio" and scale == "difference",
    )


def verdict_of(
    found: Comparison,
    configuration: str,
    metric: Metric,
    *,
    confidence: float,
    alpha: float,
    smallest_effect: float,
    deciding: bool,
) -> Verdict:
    """What the comparison says; ``alpha`` is its share of the family's error rate, 1 − ``confidence``."""
    effect = found.effect
    word = word_of(effect, metric, margin(effect, smallest_effect))
    p_value = found.contrast.p_value
    return of_effect(
        effect,
        configuration,
        metric,
        word,
        level=confidence,
        blocks=found.n[0] if found.basis == "blocks" else 0,
        values=None if found.basis == "blocks" else found.n,
        p_value=None if math.isnan(p_value) else p_value,
        deciding=deciding,
        reason=_reason(found, word, metric, alpha, smallest_effect),
    )


def without_partner(configuration: str, metric: Metric, confidence: float, lacking: str, deciding: bool) -> Verdict:
    """The verdict where one of the two, ``lacking``, has nothing of the metric."""
    reason = f"{lacking} has no value of it, so there is nothing to compare"
    return unmeasured(configuration, metric, confidence, reason, deciding=deciding)


def _reason(found: Comparison, word: Word, metric: Metric, alpha: float, smallest_effect: float) -> str:
    effect, contrast = found.effect, found.contrast
    if word == "undecided" and contrast.error > 0 and contrast.p_value >= alpha:
        said = not_evidence(
            contrast,
            found.spreads,
            found.n,
            alpha,
            scale=effect.scale,
            unit=metric.unit,
            estimate=effect.estimate,
            level=found.level,
        )
        fell_back = " Compared by differences, because a value is 0 or negative." if effect.fell_back else ""
        return said + fell_back + (f" {_left_out(found)[:1].upper()}{_left_out(found)[1:]}." if found.left_out else "")
    too_few = f"{_one_unit(found)}, so no difference can be judged" if found.level else _TOO_FEW
    return f"{reason_of(word, effect, metric, smallest_effect, too_few)} ({_from(found)})"


def one_unit_notes(comparisons: Mapping[tuple[str, str], Comparison], deciding: Collection[str]) -> tuple[str, ...]:
    """Which configurations have values of a single unit of replication only."""
    alone = {
        f"Cannot judge {name}: {_one_unit(found)}."
        for (name, metric), found in comparisons.items()
        if metric in deciding and found.level and min(found.n) == 1
    }
    return tuple(sorted(alone))


def _one_unit(found: Comparison) -> str:
    of = {"fork": "-f 5", "process": "several runs, each a process"}.get(found.level, f"several {found.level}s")
    return f"only one {found.level}: what differs from {found.level} to {found.level} is unknown (measure with {of})"


def _left_out(found: Comparison) -> str:
    return f"not in it: {count_of(found.left_out, 'value')} of blocks that only one of them has"


def _from(found: Comparison) -> str:
    one, other = found.n
    if found.basis == "blocks":
        left = f"; {_left_out(found)}" if found.left_out else ""
        return f"{count_of(one, 'block')}, compared within blocks{left}"
    if found.level:
        return f"means of {count_of(one, found.level)} and {count_of(other, found.level)}, not paired"
    kind = "means" if found.basis == "summaries" else "samples"
    return f"{kind} of {count_of(one, 'value')} and {count_of(other, 'value')}, not paired"

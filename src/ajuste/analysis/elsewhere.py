"""Verdicts for results that were measured elsewhere: their size is fixed, and so fixed-sample inference is right.

Where both configurations name blocks, values of the same block are compared; otherwise the samples as a whole. See
``analysis.fixed`` for the intervals and their sources.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from ajuste.analysis.effects import SMALLEST_RELATIVE_STEP, Effect, margin
from ajuste.analysis.fixed import Array, Contrast, of_log_means, of_means, paired, unpaired
from ajuste.analysis.sequence import Interval
from ajuste.analysis.verdict import Family, reason_of, word_of
from ajuste.foreign.table import Sample, Summarised, Table, Values
from ajuste.model.metric import Metric, Scale
from ajuste.model.verdict import Verdict

Basis = Literal["blocks", "samples", "summaries"]

UNPAIRED: Final = (
    "The configurations were not measured in common blocks, so that whatever changed between their measurements "
    "(temperature, other load, caches) cannot be told from their difference: the intervals hold only if nothing did. "
    "Randomised blocks would have compared trials of the same moment, and this drift would have cancelled."
)


@dataclass(frozen=True)
class Comparison:
    """The effect of a configuration, and on how many values (or pairs) of what kind it rests."""

    effect: Effect
    basis: Basis
    n: tuple[int, int]


def family_of(table: Table, confidence: float) -> Family:
    """All comparisons of the table: every configuration but the baseline, on every metric that both have."""
    return Family((len(table.configurations) - 1) * len(table.metrics), confidence)


def judge_table(
    table: Table, baseline: str, *, confidence: float = 0.95, smallest_effect: float = 0.05
) -> tuple[Verdict, ...]:
    """A verdict for every configuration but the ``baseline`` on every metric that both have, metric by metric."""
    alpha = family_of(table, confidence).alpha
    verdicts = []
    for metric in table.metrics:
        first = table.samples.get((baseline, metric.name))
        for configuration in table.configurations:
            second = table.samples.get((configuration, metric.name))
            if configuration != baseline and first is not None and second is not None:
                found = compare(first, second, metric, alpha)
                verdicts.append(_verdict(found, configuration, metric, confidence, smallest_effect))
    return tuple(verdicts)


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
    effect = _effect(contrast, scale, metric, alpha, (one.mean, other.mean))
    return Comparison(effect, "summaries", (one.n, other.n))


def summary_of(sample: Sample) -> Summarised:
    """Any sample as a summary; its standard error is NaN below two values."""
    if isinstance(sample, Summarised):
        return sample
    values = np.array(sample.values)
    n = len(values)
    sem = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return Summarised(n, float(np.mean(values)), sem)


def _compare_values(first: Values, second: Values, metric: Metric, alpha: float) -> Comparison:
    one, other = np.array(first.values), np.array(second.values)
    means = (float(np.mean(one)), float(np.mean(other)))
    basis: Basis = "samples"
    if first.blocks and second.blocks:
        common = _common(first, second)
        if len(common[0]):
            (one, other), basis = common, "blocks"
    positive = bool(np.all(one > 0) and np.all(other > 0))
    scale: Scale = "ratio" if metric.scale == "ratio" and positive else "difference"
    left, right = (np.log(one), np.log(other)) if scale == "ratio" else (one, other)
    contrast = paired(left, right) if basis == "blocks" else unpaired(left, right)
    return Comparison(_effect(contrast, scale, metric, alpha, means), basis, (len(one), len(other)))


def _common(first: Values, second: Values) -> tuple[Array, Array]:
    """The mean of each block that both have, in the order of the first's."""
    one, other = _by_block(first), _by_block(second)
    names = [name for name in one if name in other]
    return np.array([one[name] for name in names]), np.array([other[name] for name in names])


def _by_block(sample: Values) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for block, value in zip(sample.blocks, sample.values, strict=True):
        found.setdefault(block, []).append(value)
    return {block: float(np.mean(values)) for block, values in found.items()}


def _effect(contrast: Contrast, scale: Scale, metric: Metric, alpha: float, means: tuple[float, float]) -> Effect:
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


def _verdict(
    found: Comparison, configuration: str, metric: Metric, confidence: float, smallest_effect: float
) -> Verdict:
    effect = found.effect
    word = word_of(effect, metric, margin(effect, smallest_effect))
    return Verdict(
        configuration=configuration,
        metric=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        scale=effect.scale,
        verdict=word,
        estimate=effect.estimate,
        low=effect.low,
        high=effect.high,
        level=confidence,
        blocks=min(found.n),
        reason=f"{reason_of(word, effect, metric, smallest_effect, _too_few(found))} ({_from(found)})",
    )


def _too_few(found: Comparison) -> str:
    return "a single value has no spread: nothing can be said of a difference"


def _from(found: Comparison) -> str:
    one, other = found.n
    if found.basis == "blocks":
        return f"{one} blocks, compared pair by pair"
    kind = "means of" if found.basis == "summaries" else "samples of"
    return f"{kind} {one} and {other} values, not paired"

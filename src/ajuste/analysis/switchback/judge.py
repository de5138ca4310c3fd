"""Verdicts on the slices of a live system."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.diagnostics.diagnose import diagnose
from ajuste.analysis.effects import Effect, margin
from ajuste.analysis.signs import fewest_blocks, log_evidence
from ajuste.analysis.switchback.evidence import (
    BlockDifferences,
    CarryOver,
    adjusted,
    block_differences,
    blocks_needed,
    carry_over,
    sequence_interval,
)
from ajuste.analysis.verdict import deciding_width, of_effect, reason_of, unmeasured, word_of
from ajuste.model.live import Slice
from ajuste.model.measurements import Gathering
from ajuste.model.metric import Metric
from ajuste.model.results import Diagnostic, Diagnostics
from ajuste.model.verdict import Verdict
from ajuste.model.wording import change, count_of

_TRIAL: Final = re.compile(r"\btrial(s?)\b")

_WHY: Final = {
    "autocorrelation": "The order of every block is drawn at random, so verdicts hold however slices resemble each "
    "other.",
    "carry-over": "The effect of a slice reaches into the next: use longer slices or a longer wash-out.",
}
CARRIES: Final = 0.01
"""The error rate of a carry-over, at each look."""
FEWEST_BLOCKS: Final = 20
SURE: Final = 3.0
"""So many standard errors from nothing is taken for a change of the effect."""


def noise_of(slices: Sequence[Slice], metric: Metric) -> Diagnostics:
    """What is found in the slices that count."""
    found = diagnose(_measurements(slices, metric).measurements(), (metric,), "wall")
    return found.model_copy(
        update={
            "found": tuple(map(_of_slices, found.found)),
            "naive": tuple(one.model_copy(update={"says": _in_slices(one.says)}) for one in found.naive),
        }
    )


def sentences(diagnostics: Diagnostics) -> tuple[str, ...]:
    """Those findings that are there and matter, and what they mean for the verdicts."""
    return (
        *(f"{one.says} {one.why}".strip() for one in diagnostics.found if one.matters),
        *(one.says for one in diagnostics.naive),
    )


def changes_over_time(differences: NDArray[np.float64]) -> bool:
    """Whether the effect itself changes: whether differences of neighbouring blocks resemble each other.

    Under one and the same effect their signs around it are independent, so the products of neighbours add up to
    nothing, with the sum of their squares as variance, whatever the noise is.
    """
    if len(differences) < FEWEST_BLOCKS:
        return False
    away = differences - np.mean(differences)
    products = away[1:] * away[:-1]
    return float(np.sum(products)) > SURE * float(np.sqrt(np.sum(products**2)))


def _of_slices(found: Diagnostic) -> Diagnostic:
    why = _WHY.get(found.kind, found.why) if found.present else found.why
    return found.model_copy(
        update={
            "says": _in_slices(found.says),
            "measures": _in_slices(found.measures),
            "why": _in_slices(why),
            "verdict_affected": found.verdict_affected and found.kind not in _WHY,
        }
    )


def _in_slices(text: str) -> str:
    return _TRIAL.sub(r"slice\1", text)


def _measurements(slices: Sequence[Slice], metric: Metric) -> Gathering:
    """The slices as if they were trials. Where a block has a configuration several times, it is as many blocks: its
    first slices, its second ones and so on.
    """
    counting = [one for one in sorted(slices, key=lambda one: one.number) if one.counts]
    seen: Counter[tuple[int, str]] = Counter()
    numbers: dict[tuple[int, int], int] = {}
    positions: Counter[int] = Counter()
    blocks, places = [], []
    for one in counting:
        part = (one.block, seen[one.block, one.configuration])
        seen[one.block, one.configuration] += 1
        block = numbers.setdefault(part, len(numbers))
        blocks.append(block)
        places.append(positions[block])
        positions[block] += 1
    count = len(counting)
    gathering = Gathering(read_written=tuple, read_not_supported=dict)
    gathering.extend(
        block=blocks,
        position=places,
        attempt=[0] * count,
        seed=[0] * count,
        warm_up=[False] * count,
        metrics=[{metric.name: one.value or 0.0} for one in counting],
        configuration=[one.configuration for one in counting],
        status=["ok"] * count,
        reason=[""] * count,
        written=[()] * count,
        not_supported=[()] * count,
    )
    return gathering


ALPHA_OF_CONTROL: Final = 0.1
"""The part of the error rate that goes into whether a configuration changes the control itself."""
HELPS: Final = 0.9
"""A control helps where less than this share of the variance is left with it."""


@dataclass(frozen=True)
class SwitchbackJudgement:
    """What slices say of one metric: a verdict for every configuration but the baseline.

    ``more_slices`` is about how many more slices decide the open ones: 0 where all are decided, ``None`` where nothing
    can be said yet. ``findings`` are sentences on what was seen in the noise, ``diagnostics`` the same with figures.
    ``adjusted`` names the configurations whose estimate is that at equal load, by the slices' ``control``.
    """

    metric: Metric
    verdicts: tuple[Verdict, ...]
    more_slices: int | None
    findings: tuple[str, ...] = ()
    diagnostics: Diagnostics | None = None
    adjusted: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Judged:
    verdict: Verdict
    adjusted: bool = False
    findings: tuple[str, ...] = ()


def judge_slices(
    slices: Sequence[Slice],
    metric: Metric,
    *,
    baseline: str,
    configurations: Sequence[str],
    comparisons: int = 1,
    confidence: float = 0.95,
    smallest_effect: float = 0.05,
    diagnose_noise: bool = True,
) -> SwitchbackJudgement:
    """What ``slices`` so far say of ``metric``, for every one of ``configurations`` (names; the baseline among them).

    The verdicts of all ``comparisons`` of the experiment (configurations besides the baseline × deciding metrics) hold
    together with ``confidence``, however often and whenever one looks. That rests on blocks whose order was drawn as
    ``design.switchback`` does, also for the part of a block that there is when time is over: any two configurations of
    it could as well have been exchanged.
    """
    alpha = (1 - confidence) / max(1, comparisons)
    found = [
        _judged(
            block_differences(slices, metric, baseline, name),
            name,
            metric,
            alpha=alpha,
            confidence=confidence,
            smallest_effect=smallest_effect,
        )
        for name in configurations
        if name != baseline
    ]
    diagnostics = noise_of(slices, metric) if diagnose_noise else None
    return SwitchbackJudgement(
        metric=metric,
        verdicts=tuple(one.verdict for one in found),
        more_slices=_more_slices([one.verdict for one in found], slices),
        findings=(
            *(finding for one in found for finding in one.findings),
            *(sentences(diagnostics) if diagnostics is not None else ()),
        ),
        diagnostics=diagnostics,
        adjusted=tuple(one.verdict.configuration for one in found if one.adjusted),
    )


def _judged(
    own: BlockDifferences | None,
    configuration: str,
    metric: Metric,
    *,
    alpha: float,
    confidence: float,
    smallest_effect: float,
) -> _Judged:
    if own is None:
        reason = "no block has a clean slice of both the baseline and this configuration yet"
        return _Judged(unmeasured(configuration, metric, confidence, reason))
    control, findings = own.control, []
    if control is not None:
        if float(np.max(log_evidence(control))) >= -math.log(ALPHA_OF_CONTROL * alpha):
            control = None
            findings.append(f"{configuration} changes the control figure itself: the verdict does not use it.")
        alpha *= 1 - ALPHA_OF_CONTROL
    if changes_over_time(own.values):
        findings.append(
            f"The effect of {configuration} changes over time: the verdict is about its mean over the experiment."
        )
    interval = sequence_interval(own.values, alpha=alpha, floor=own.floor, control=control)
    effect = Effect(
        own.scale,
        interval,
        own.baseline_mean,
        metric.resolution,
        same=own.same,
        fell_back=own.fell_back,
        baseline_level=own.baseline_mean,
    )
    zone = margin(effect, smallest_effect)
    word = word_of(effect, metric, zone)
    after = carry_over(own, control)
    withheld = "" if word == "undecided" else _withheld(after, effect, configuration, metric, zone)
    more = None
    differs = not withheld and word not in ("undecided", "equivalent")
    if differs and not after.shows_settled:
        findings.append(
            f"Whether {configuration} does the same when it stays was not tested: the random order would show it."
        )
    elif differs and not after.settles(effect.interval.mean):
        stays = change(effect.natural(after.settled), effect.scale, metric.unit)
        withheld = f"with what it does to the next slice its effect is {stays}, and not certain yet"
        if after.settled * effect.interval.mean > 0:
            more = max(1, math.ceil((after.times_as_many - 1) * interval.n))
    if withheld:
        word = "undecided"
    if word == "equivalent":
        findings.append(
            f"If {configuration} takes two slices or longer to settle, its effect looks like none: use longer slices."
        )
    if word != "undecided" and len(own.values) < FEWEST_BLOCKS:
        findings.append(
            f"Whether the effect of {configuration} changes with time or load was not tested: that takes "
            f"{FEWEST_BLOCKS} blocks, and the verdict rests on {len(own.values)}."
        )
    noise = own.values - float(np.mean(own.values))
    helps = False
    if control is not None and len(noise) > 2:
        left = adjusted(noise, control)
        helps = float(np.var(left)) < HELPS * float(np.var(noise))
        noise = left if helps else noise
    if word == "undecided" and not withheld:
        needed = blocks_needed(noise, deciding_width(interval, zone), alpha)
        more = None if needed is None else max(1, needed - interval.n)
    too_few = f"{count_of(interval.n, 'block')} of the {fewest_blocks(alpha, 'long')} that an interval requires"
    return _Judged(
        of_effect(
            effect,
            configuration,
            metric,
            word,
            level=confidence,
            blocks=interval.n,
            more_blocks=more,
            reason=withheld or reason_of(word, effect, metric, smallest_effect, too_few),
        ),
        adjusted=helps,
        findings=tuple(findings),
    )


def _withheld(after: CarryOver, effect: Effect, configuration: str, metric: Metric, zone: float) -> str:
    """Why there is no verdict although the interval would give one; empty where there is."""
    if not after.known:
        return "too few slices follow each configuration to know whether the effect of one reaches into the next"
    if after.p_value >= CARRIES or abs(after.size) <= zone:
        return ""
    size = change(effect.natural(after.size), effect.scale, metric.unit)
    return (
        f"{configuration} changes the slice after its own, too ({size}), by more than the smallest effect: use longer "
        f"slices and a longer wash-out"
    )


def _more_slices(verdicts: Sequence[Verdict], slices: Sequence[Slice]) -> int | None:
    """About how many more, in blocks as long as the last whole one."""
    more = [one.more_blocks for one in verdicts if one.is_open]
    if not more:
        return 0
    known = [blocks for blocks in more if blocks is not None]
    if len(known) < len(more) or not slices:
        return None
    lengths = Counter(one.block for one in slices)
    return max(known) * lengths[max(lengths)]

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
from ajuste.analysis.verdict import build_verdict, deciding_width, unmeasured, verdict_reason, verdict_word
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
"""That many standard errors from nothing count as a change of the effect."""


def diagnose_slices(slices: Sequence[Slice], metric: Metric) -> Diagnostics:
    """Diagnose the slices that count."""
    diagnostics = diagnose(_measurements(slices, metric).measurements(), (metric,), "wall")
    return diagnostics.model_copy(
        update={
            "found": tuple(map(_finding_on_slices, diagnostics.found)),
            "naive": tuple(
                finding.model_copy(update={"says": _in_slices(finding.says)}) for finding in diagnostics.naive
            ),
        }
    )


def sentences(diagnostics: Diagnostics) -> tuple[str, ...]:
    """Return the findings that matter, and their consequences for the verdicts."""
    return (
        *(f"{finding.says} {finding.why}".strip() for finding in diagnostics.found if finding.matters),
        *(finding.says for finding in diagnostics.naive),
    )


def changes_over_time(differences: NDArray[np.float64]) -> bool:
    """Return whether the effect itself changes: whether differences of neighbouring blocks resemble each other.

    Under one and the same effect their signs around it are independent, so the products of neighbours add up to
    nothing, with the sum of their squares as variance, whatever the noise is.
    """
    if len(differences) < FEWEST_BLOCKS:
        return False
    away = differences - np.mean(differences)
    products = away[1:] * away[:-1]
    return float(np.sum(products)) > SURE * float(np.sqrt(np.sum(products**2)))


def _finding_on_slices(finding: Diagnostic) -> Diagnostic:
    why = _WHY.get(finding.kind, finding.why) if finding.present else finding.why
    return finding.model_copy(
        update={
            "says": _in_slices(finding.says),
            "measures": _in_slices(finding.measures),
            "why": _in_slices(why),
            "verdict_affected": finding.verdict_affected and finding.kind not in _WHY,
        }
    )


def _in_slices(text: str) -> str:
    return _TRIAL.sub(r"slice\1", text)


def _measurements(slices: Sequence[Slice], metric: Metric) -> Gathering:
    # Gather the slices as trials; a block with several slices of each configuration becomes as many blocks.
    counting = [time_slice for time_slice in sorted(slices, key=lambda s: s.number) if time_slice.counts]
    seen: Counter[tuple[int, str]] = Counter()
    numbers: dict[tuple[int, int], int] = {}
    positions: Counter[int] = Counter()
    blocks, places = [], []
    for time_slice in counting:
        part = (time_slice.block, seen[time_slice.block, time_slice.configuration])
        seen[time_slice.block, time_slice.configuration] += 1
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
        metrics=[{metric.name: time_slice.value or 0.0} for time_slice in counting],
        configuration=[time_slice.configuration for time_slice in counting],
        status=["ok"] * count,
        reason=[""] * count,
        written=[()] * count,
        not_supported=[()] * count,
    )
    return gathering


ALPHA_OF_CONTROL: Final = 0.1
"""The part of the error rate for whether a configuration changes the control itself."""
HELPS: Final = 0.9
"""A control helps where less than this share of the variance is left with it."""


@dataclass(frozen=True)
class SwitchbackJudgement:
    """Verdicts on one metric for every configuration but the baseline.

    ``more_slices`` is about how many more slices decide the open ones: 0 where all are decided, ``None`` where nothing
    can be said yet. ``findings`` are sentences on the noise, ``diagnostics`` the same with figures. ``adjusted`` names
    the configurations whose estimate is that at equal load, by the slices' ``control``.
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
    """Judge ``slices`` so far on ``metric`` for each of ``configurations`` (names; the baseline among them).

    The verdicts of all ``comparisons`` of the experiment (configurations besides the baseline × deciding metrics) hold
    together with ``confidence``, however often and whenever one looks. That rests on blocks whose order was drawn as in
    ``design.switchback``, also for the incomplete block at the end: any two configurations of it could as well have
    been exchanged.
    """
    alpha = (1 - confidence) / max(1, comparisons)
    outcomes = [
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
    diagnostics = diagnose_slices(slices, metric) if diagnose_noise else None
    return SwitchbackJudgement(
        metric=metric,
        verdicts=tuple(outcome.verdict for outcome in outcomes),
        more_slices=_more_slices([outcome.verdict for outcome in outcomes], slices),
        findings=(
            *(finding for outcome in outcomes for finding in outcome.findings),
            *(sentences(diagnostics) if diagnostics is not None else ()),
        ),
        diagnostics=diagnostics,
        adjusted=tuple(outcome.verdict.configuration for outcome in outcomes if outcome.adjusted),
    )


def _judged(
    differences: BlockDifferences | None,
    configuration: str,
    metric: Metric,
    *,
    alpha: float,
    confidence: float,
    smallest_effect: float,
) -> _Judged:
    if differences is None:
        reason = "no block has a clean slice of both the baseline and this configuration yet"
        return _Judged(unmeasured(configuration, metric, confidence, reason))
    control, findings = differences.control, []
    if control is not None:
        if float(np.max(log_evidence(control))) >= -math.log(ALPHA_OF_CONTROL * alpha):
            control = None
            findings.append(f"{configuration} changes the control figure itself: the verdict does not use it.")
        alpha *= 1 - ALPHA_OF_CONTROL
    if changes_over_time(differences.values):
        findings.append(
            f"The effect of {configuration} changes over time: the verdict is about its mean over the experiment."
        )
    interval = sequence_interval(differences.values, alpha=alpha, floor=differences.floor, control=control)
    effect = Effect(
        differences.scale,
        interval,
        differences.baseline_mean,
        metric.resolution,
        same=differences.same,
        fell_back=differences.fell_back,
        baseline_level=differences.baseline_mean,
    )
    zone = margin(effect, smallest_effect)
    word = verdict_word(effect, metric, zone)
    carried = carry_over(differences, control)
    withheld = "" if word == "undecided" else _withheld(carried, effect, configuration, metric, zone)
    more = None
    differs = not withheld and word not in ("undecided", "equivalent")
    if differs and not carried.shows_settled:
        findings.append(
            f"Whether {configuration} does the same when it stays was not tested: the random order would show it."
        )
    elif differs and not carried.settles(effect.interval.mean):
        stays = change(effect.natural(carried.settled), effect.scale, metric.unit)
        withheld = f"with what it does to the next slice its effect is {stays}, and not certain yet"
        if carried.settled * effect.interval.mean > 0:
            more = max(1, math.ceil((carried.times_as_many - 1) * interval.n))
    if withheld:
        word = "undecided"
    if word == "equivalent":
        findings.append(
            f"If {configuration} takes two slices or longer to settle, its effect looks like none: use longer slices."
        )
    if word != "undecided" and len(differences.values) < FEWEST_BLOCKS:
        findings.append(
            f"Whether the effect of {configuration} changes with time or load was not tested: that takes "
            f"{FEWEST_BLOCKS} blocks, and the verdict rests on {len(differences.values)}."
        )
    noise = differences.values - float(np.mean(differences.values))
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
        build_verdict(
            effect,
            configuration,
            metric,
            word,
            level=confidence,
            blocks=interval.n,
            more_blocks=more,
            reason=withheld or verdict_reason(word, effect, metric, smallest_effect, too_few),
        ),
        adjusted=helps,
        findings=tuple(findings),
    )


def _withheld(carried: CarryOver, effect: Effect, configuration: str, metric: Metric, zone: float) -> str:
    # Say why there is no verdict although the interval would give one; empty where there is.
    if not carried.known:
        return "too few slices follow each configuration to know whether the effect of one reaches into the next"
    if carried.p_value >= CARRIES or abs(carried.size) <= zone:
        return ""
    size = change(effect.natural(carried.size), effect.scale, metric.unit)
    return (
        f"{configuration} changes the slice after its own, too ({size}), by more than the smallest effect: use longer "
        f"slices and a longer wash-out"
    )


def _more_slices(verdicts: Sequence[Verdict], slices: Sequence[Slice]) -> int | None:
    # Estimate how many more slices are needed, in blocks as long as the last whole one.
    more = [verdict.more_blocks for verdict in verdicts if verdict.is_open]
    if not more:
        return 0
    known = [blocks for blocks in more if blocks is not None]
    if len(known) < len(more) or not slices:
        return None
    lengths = Counter(time_slice.block for time_slice in slices)
    return max(known) * lengths[max(lengths)]

"""Verdicts on the slices of a live system."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ajuste.analysis.effects import Effect, margin
from ajuste.analysis.switchback.blocks import BlockDifferences, block_differences
from ajuste.analysis.switchback.evidence import adjusted, blocks_needed, fewest_blocks, log_evidence, sequence_interval
from ajuste.analysis.switchback.noise import changes_over_time, noise_of, sentences
from ajuste.analysis.verdict import deciding_width, of_effect, reason_of, unmeasured, word_of
from ajuste.model.diagnostic import Diagnostics
from ajuste.model.metric import Metric
from ajuste.model.slices import Slice
from ajuste.model.verdict import Verdict

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
    deciding: bool = True,
    in_progress: int | None = None,
    diagnose_noise: bool = True,
) -> SwitchbackJudgement:
    """What ``slices`` so far say of ``metric``, for every one of ``configurations`` (names; the baseline among them).

    The verdicts of all ``comparisons`` of the experiment (configurations besides the baseline × deciding metrics) hold
    together with ``confidence``, however often and whenever one looks. That rests on blocks whose order was drawn as
    ``design.switchback`` does, and on whole ones: the block that is ``in_progress`` does not count yet.
    """
    alpha = (1 - confidence) / max(1, comparisons)
    whole = [one for one in slices if one.block != in_progress]
    found = [
        _judged(
            block_differences(whole, metric, baseline, name),
            name,
            metric,
            alpha=alpha,
            confidence=confidence,
            smallest_effect=smallest_effect,
            deciding=deciding,
        )
        for name in configurations
        if name != baseline
    ]
    diagnostics = noise_of(slices, metric) if diagnose_noise else None
    return SwitchbackJudgement(
        metric=metric,
        verdicts=tuple(one.verdict for one in found),
        more_slices=_more_slices([one.verdict for one in found], whole),
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
    deciding: bool,
) -> _Judged:
    if own is None:
        reason = "no block has a clean slice of both the baseline and this configuration yet"
        return _Judged(unmeasured(configuration, metric, confidence, reason, deciding=deciding))
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
    effect = Effect(own.scale, interval, own.baseline_mean, metric.resolution, same=own.same, fell_back=own.fell_back)
    zone = margin(effect, smallest_effect)
    word = word_of(effect, metric, zone)
    noise = own.values - float(np.mean(own.values))
    helps = False
    if control is not None and len(noise) > 2:
        left = adjusted(noise, control)
        helps = float(np.var(left)) < HELPS * float(np.var(noise))
        noise = left if helps else noise
    more = None
    if word == "undecided":
        needed = blocks_needed(noise, deciding_width(interval, zone), alpha)
        more = None if needed is None else max(1, needed - interval.n)
    blocks = f"{interval.n} block" if interval.n == 1 else f"{interval.n} blocks"
    too_few = f"{blocks} of the {fewest_blocks(alpha)} that an interval requires"
    return _Judged(
        of_effect(
            effect,
            configuration,
            metric,
            word,
            level=confidence,
            blocks=interval.n,
            more_blocks=more,
            deciding=deciding,
            reason=reason_of(word, effect, metric, smallest_effect, too_few),
        ),
        adjusted=helps,
        findings=tuple(findings),
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

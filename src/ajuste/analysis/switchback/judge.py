"""Verdicts on the slices of a live system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ajuste.analysis.effects import effect, margin
from ajuste.analysis.pairs import Pairs
from ajuste.analysis.verdict import more_blocks, of_effect, reason_of, unmeasured, word_of
from ajuste.model.diagnostic import Diagnostics
from ajuste.model.metric import Metric
from ajuste.model.slices import Slice
from ajuste.model.verdict import Verdict


@dataclass(frozen=True)
class SwitchbackJudgement:
    """What slices say of one metric: a verdict for every configuration but the baseline.

    ``more_slices`` is about how many more slices decide the open ones, 0 where all are decided and ``None`` where
    nothing can be said. ``findings`` are sentences on what was seen in the noise; ``diagnostics`` the same with figures.
    ``adjusted`` names the configurations whose effect is that at equal load, by the slices' ``control``.
    """

    metric: Metric
    verdicts: tuple[Verdict, ...]
    more_slices: int | None
    findings: tuple[str, ...] = ()
    diagnostics: Diagnostics | None = None
    adjusted: tuple[str, ...] = ()


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
) -> SwitchbackJudgement:
    """What ``slices`` so far say of ``metric``, for every one of ``configurations`` (names; the baseline among them).

    The verdicts of all ``comparisons`` of the experiment (configurations besides the baseline × deciding metrics) hold
    together with ``confidence``, however often and whenever one looks.
    """
    alpha = (1 - confidence) / max(1, comparisons)
    verdicts = []
    for name in configurations:
        if name == baseline:
            continue
        both = _pairs(slices, baseline, name)
        found = effect(both, metric, alpha)
        if found is None:
            verdicts.append(unmeasured(name, metric, confidence, "no block has both", deciding=deciding))
            continue
        zone = margin(found, smallest_effect)
        word = word_of(found, metric, zone)
        verdicts.append(
            of_effect(
                found,
                name,
                metric,
                word,
                level=confidence,
                blocks=found.interval.n,
                more_blocks=more_blocks(found, zone, alpha) if word == "undecided" else None,
                deciding=deciding,
                reason=reason_of(word, found, metric, smallest_effect, "too few blocks"),
            )
        )
    return SwitchbackJudgement(metric, tuple(verdicts), None)


def _pairs(slices: Sequence[Slice], baseline: str, other: str) -> Pairs:
    found: dict[int, Mapping[str, list[float]]] = {}
    for one in slices:
        if one.counts and one.value is not None and one.configuration in (baseline, other):
            found.setdefault(one.block, {baseline: [], other: []})[one.configuration].append(one.value)
    blocks = [own for own in found.values() if own[baseline] and own[other]]
    return Pairs(
        np.array([np.mean(own[baseline]) for own in blocks]), np.array([np.mean(own[other]) for own in blocks])
    )

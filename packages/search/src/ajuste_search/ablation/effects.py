"""Ablation of a profile: the effect of the whole, shared out among its lines by their Shapley values.

For every block each figure is a weighted sum of the logarithms of its values (of the values where ratios are not
possible); the blocks' sums have the same anytime-valid interval as the pairs of two configurations. Half the error rate
is spent on the shares, which decide, the other half on the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.pairs import Trials, clean_trials
from ajuste.analysis.verdict import effect_fields, verdict_reason
from ajuste.model.metric import Metric
from ajuste.model.verdict import Bounds, LineEffect, Role
from ajuste.model.wording import change, count_of, percent
from ajuste_stats.confidence_sequences import fewest
from ajuste_stats.decision import more_blocks, verdict_word
from ajuste_stats.effects import Effect, margin
from ajuste_stats.shapley import KINDS, TERMS, Share, SubsetTable, block_sums, effect_of_sums, subset_table
from ajuste_stats.sign_intervals import blind_spot
from ajuste_stats.terms import Word

_ROLES: Final[Mapping[Word, Role]] = {
    "improves": "helps",
    "worsens": "harms",
    "differs": "matters",
    "equivalent": "useless",
    "undecided": "undecided",
}


@dataclass(frozen=True)
class Rates:
    """The error rate of one share, and of one of the other figures, of ``lines`` on ``metrics`` at ``confidence``."""

    lines: int
    metrics: int
    confidence: float

    @property
    def share(self) -> float:
        return (1 - self.confidence) / 2 / max(1, self.lines * self.metrics)

    @property
    def other(self) -> float:
        return (1 - self.confidence) / 2 / max(1, (3 * self.lines + 1) * self.metrics)

    @property
    def words(self) -> str:
        """Return the correction for people."""
        return (
            f"Bonferroni: half of the {percent(1 - self.confidence)} for the shares of "
            f"{count_of(self.lines, 'line')} on {count_of(self.metrics, 'deciding metric')}, each at "
            f"{percent(1 - self.share)}; half for each line alone, last and the difference of these, "
            f"and the whole, each at {percent(1 - self.other)}; all hold together at {percent(self.confidence)} "
            f"whenever the study stops"
        )


@dataclass(frozen=True)
class Lines:
    """The lines by name with what each sets, and the names of the configurations in the order of ``subsets``."""

    sets: Mapping[str, Mapping[str, str]]
    configurations: Sequence[str]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.sets)


def ablation(
    lines: Lines, trials: Trials, metrics: Sequence[Metric], *, confidence: float, smallest_effect: float
) -> tuple[LineEffect, ...]:
    """Return the effects of the whole and of each line on each of ``metrics``; may be looked at after every block."""
    clean = clean_trials(trials)
    rows = np.stack([clean.places(name) for name in lines.configurations])
    rates = Rates(len(lines.names), len(metrics), confidence)
    findings: list[LineEffect] = []
    for metric in metrics:
        column = clean.measured.metrics.get(metric.name)
        values = np.full(rows.shape, np.nan) if column is None else np.where(rows >= 0, column[rows], np.nan)
        findings += effects_from_values(lines, values, clean.blocks.tolist(), metric, rates, smallest_effect)
    return tuple(findings)


def effects_from_values(
    lines: Lines,
    values: NDArray[np.float64],
    blocks: Sequence[int],
    metric: Metric,
    rates: Rates,
    smallest_effect: float,
) -> list[LineEffect]:
    """Return the same from ``values``: a row for each of ``lines.configurations``, a column for each of ``blocks``."""
    return _of_metric(lines, subset_table(values, blocks, metric), metric, rates, smallest_effect)


def _of_metric(
    lines: Lines, table: SubsetTable | None, metric: Metric, rates: Rates, smallest_effect: float
) -> list[LineEffect]:
    names = lines.names
    whole = None
    if table:
        difference = table.values[1] - table.values[0]
        whole = effect_of_sums(table, rates.other, difference[~np.isnan(difference)])
    finding = _finding(whole, "whole", "the whole", metric, rates, smallest_effect, rates.other)
    findings = [finding.model_copy(update={"part": _part(whole, whole)})]
    sums = block_sums(table.values, table.blocks, len(names)) if table else {}
    for place, name in enumerate(names):
        effects: dict[Share, Effect | None] = dict.fromkeys(KINDS)
        if table:
            for kind in KINDS:
                alpha = rates.share if kind == "share" else rates.other
                effects[kind] = effect_of_sums(table, alpha, sums[kind][place], TERMS[kind])
        findings.append(_of_line(name, lines.sets[name], effects, whole, metric, rates, smallest_effect))
    return findings


def _of_line(
    name: str,
    sets: Mapping[str, str],
    effects: Mapping[Share, Effect | None],
    whole: Effect | None,
    metric: Metric,
    rates: Rates,
    smallest_effect: float,
) -> LineEffect:
    finding = _finding(effects["share"], "line", name, metric, rates, smallest_effect, rates.share)
    words = {kind: _word(effect, metric, smallest_effect) for kind, effect in effects.items()}
    alone, last = (
        change(effect.estimate, effect.scale, metric.unit) if effect else "?"
        for effect in (effects["alone"], effects["last"])
    )
    both = f"{alone} alone, {last} as the last one added"
    bounds: dict[str, Bounds] = {
        kind: Bounds(estimate=effect.estimate, low=effect.low, high=effect.high) if effect else Bounds()
        for kind, effect in effects.items()
        if kind != "share"
    }
    role, verdict, reason = finding.role, finding.verdict, finding.reason
    if role == "useless" and not {words["alone"], words["last"]} <= {"equivalent", "undecided"}:
        role, verdict = "depends", "differs"
        reason = f"overall it has no effect that matters, but {both}"
    return finding.model_copy(
        update={
            "sets": dict(sets),
            "role": role,
            "verdict": verdict,
            "reason": reason,
            "part": _part(effects["share"], whole),
            **bounds,
            "remark": "" if words["between"] in ("equivalent", "undecided") else f"it depends on other lines: {both}",
        }
    )


def _word(effect: Effect | None, metric: Metric, smallest_effect: float) -> Word:
    return verdict_word(effect, metric, margin(effect, smallest_effect)) if effect else "undecided"


def _finding(
    effect: Effect | None,
    kind: Literal["line", "whole"],
    name: str,
    metric: Metric,
    rates: Rates,
    smallest_effect: float,
    alpha: float,
) -> LineEffect:
    zone = margin(effect, smallest_effect) if effect else 0.0
    word = _word(effect, metric, smallest_effect)
    if effect is None:
        reason = "no block has a clean trial of every configuration that it needs"
    else:
        too_few = f"{effect.interval.n} of the {fewest(alpha)} complete blocks that an interval requires"
        reason = verdict_reason(word, effect, metric, smallest_effect, too_few)
    return LineEffect(
        kind=kind,
        line=name,
        role=_ROLES[word],
        verdict=word,
        **effect_fields(effect, metric),
        level=rates.confidence,
        blocks=effect.interval.n if effect else 0,
        more_blocks=more_blocks(effect, zone, alpha) if effect and word == "undecided" else None,
        unseen=blind_spot(effect.interval.n, rates.confidence) if effect else None,
        reason=reason,
    )


def _part(share: Effect | None, whole: Effect | None) -> float | None:
    # Nothing is shared out where the whole may do nothing.
    if share is None or whole is None or whole.interval.low <= 0 <= whole.interval.high:
        return None
    return share.interval.mean / whole.interval.mean

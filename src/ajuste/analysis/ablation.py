"""Ablation of a profile: the effect of the whole, shared out among its lines by their Shapley values.

For every block each figure is a weighted sum of the logarithms of its values (of the values where ratios are not
possible); the blocks' sums have the same anytime-valid interval as the pairs of two configurations. Half the error rate
is spent on the shares, which decide, the other half on the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.pairs import Trials, clean_trials
from ajuste.analysis.verdict import effect_fields, verdict_reason
from ajuste.design.combinations import ORDERS, Subset, block_order, is_exact, of_block, subsets, way
from ajuste.model.metric import Metric
from ajuste.model.verdict import Bounds, LineEffect, Role
from ajuste.model.wording import change, count_of, percent
from ajuste_stats.confidence_sequences import fewest, mean_interval, widened
from ajuste_stats.decision import more_blocks, verdict_word
from ajuste_stats.effects import Effect, margin
from ajuste_stats.rounding import figure_step, row_errors
from ajuste_stats.sign_intervals import blind_spot
from ajuste_stats.terms import Scale, Word

Kind = Literal["share", "alone", "last", "between"]
Weights: TypeAlias = NDArray[np.float64]

KINDS: Final[tuple[Kind, ...]] = ("share", "alone", "last", "between")
# Values of one block that weigh as much as one in each.
_TERMS: Final[Mapping[Kind, int]] = {"share": 1, "alone": 2, "last": 2, "between": 4}

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


@cache
def weights(lines: int, block: int) -> tuple[NDArray[np.int64], Mapping[Kind, Weights]]:
    """Return the places among ``subsets(lines)`` of a block's configurations, and each line's weights by figure."""
    every = {subset: place for place, subset in enumerate(subsets(lines))}
    held = of_block(lines, block)
    place = {subset: column for column, subset in enumerate(held)}
    whole = frozenset(range(lines))
    rows = {kind: np.zeros((lines, len(held))) for kind in KINDS}
    for line in range(lines):
        alone = frozenset({line})
        _step(rows["alone"][line], place, frozenset(), alone)
        _step(rows["last"][line], place, whole - alone, whole)
    rows["between"] = rows["last"] - rows["alone"]
    if is_exact(lines):
        _exactly(rows["share"], lines, place)
        return np.array([every[subset] for subset in held]), rows
    order = block_order(lines, block)
    for direction in (order, order[::-1]):
        for line, (before, after) in zip(direction, pairwise(way(direction)), strict=True):
            _step(rows["share"][line], place, before, after, 0.5)
    return np.array([every[subset] for subset in held]), rows


def _step(row: Weights, place: Mapping[Subset, int], before: Subset, after: Subset, weight: float = 1.0) -> None:
    row[place[after]] += weight
    row[place[before]] -= weight


def _exactly(into: Weights, lines: int, place: Mapping[Subset, int]) -> None:
    # Shapley's formula: what a line adds to each combination of others, weighted by how many orders have that.
    for subset in place:
        for line in set(range(lines)) - subset:
            size = len(subset)
            weight = math.factorial(size) * math.factorial(lines - size - 1) / math.factorial(lines)
            _step(into[line], place, subset, subset | {line}, weight)


def block_sums(values: Weights, blocks: Sequence[int], lines: int) -> Mapping[Kind, Weights]:
    """Return for each kind of figure a row for each line, a column for each block that has all it takes.

    ``values`` has a row for each of ``subsets(lines)`` and a column for each of ``blocks``, by their numbers; NaN where
    there is no value.
    """
    sums_by_kind: dict[Kind, list[Weights]] = {kind: [] for kind in KINDS}
    for number, column in zip(blocks, values.T, strict=True):
        places, rows = weights(lines, 0 if is_exact(lines) else number % ORDERS)
        held = column[places]
        missing = np.isnan(held)
        for kind, sums in sums_by_kind.items():
            if not missing.any() or not np.any(rows[kind][:, missing]):
                sums.append(rows[kind] @ np.where(missing, 0.0, held))
    return {kind: np.stack(sums, axis=1) if sums else np.empty((lines, 0)) for kind, sums in sums_by_kind.items()}


@dataclass(frozen=True)
class _Table:
    # One metric by subset and block, as logarithms if `ratio`. `rounding` is the variance from its resolution, `error`
    # how far it may have moved any mean.
    values: Weights
    blocks: Sequence[int]
    ratio: bool
    rounding: float
    error: float
    step: float
    baseline_mean: float
    fell_back: bool


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
    lines: Lines, values: Weights, blocks: Sequence[int], metric: Metric, rates: Rates, smallest_effect: float
) -> list[LineEffect]:
    """Return the same from ``values``: a row for each of ``lines.configurations``, a column for each of ``blocks``."""
    return _of_metric(lines, _table(values, blocks, metric), metric, rates, smallest_effect)


def _table(values: Weights, blocks: Sequence[int], metric: Metric) -> _Table | None:
    if not values.size or np.all(np.isnan(values[0])):
        return None
    baseline_mean = float(np.nanmean(values[0]))
    step = figure_step(metric, values[np.isfinite(values)])
    ratio = metric.scale == "ratio" and bool(np.nanmin(values) > 0)
    rounding = step**2 / 12 / (baseline_mean**2 if ratio else 1)
    fell_back = metric.scale == "ratio" and not ratio
    error = float(np.max(row_errors(metric, values, as_ratio=ratio)))
    return _Table(np.log(values) if ratio else values, blocks, ratio, rounding, error, step, baseline_mean, fell_back)


def _of_metric(
    lines: Lines, table: _Table | None, metric: Metric, rates: Rates, smallest_effect: float
) -> list[LineEffect]:
    names = lines.names
    whole = None
    if table:
        difference = table.values[1] - table.values[0]
        whole = _effect(table, rates.other, difference[~np.isnan(difference)])
    finding = _finding(whole, "whole", "the whole", metric, rates, smallest_effect, rates.other)
    findings = [finding.model_copy(update={"part": _part(whole, whole)})]
    sums = block_sums(table.values, table.blocks, len(names)) if table else {}
    for place, name in enumerate(names):
        effects: dict[Kind, Effect | None] = dict.fromkeys(KINDS)
        if table:
            for kind in KINDS:
                alpha = rates.share if kind == "share" else rates.other
                effects[kind] = _effect(table, alpha, sums[kind][place], _TERMS[kind])
        findings.append(_of_line(name, lines.sets[name], effects, whole, metric, rates, smallest_effect))
    return findings


def _effect(table: _Table, alpha: float, block_values: Weights, terms: int = 2) -> Effect | None:
    # Return the mean of the blocks' sums, of about `terms` values each, whose rounding is the least variance.
    if not len(block_values):
        return None
    error = max(2, terms) * table.error  # The weights of a share add up to 2 as well.
    interval = widened(mean_interval(block_values, alpha=alpha, floor=terms * table.rounding), error)
    same = bool(np.all(block_values == 0))
    scale: Scale = "ratio" if table.ratio else "difference"
    return Effect(scale, interval, table.baseline_mean, table.step, same, table.fell_back, rounding=error)


def _of_line(
    name: str,
    sets: Mapping[str, str],
    effects: Mapping[Kind, Effect | None],
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

"""Measurements of a search so far, by block and by the levels that the kernel had."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ajuste.analysis.pairs import Trials, clean_trials
from ajuste.analysis.summary import estimate_interval
from ajuste.design.search.goal import Constraint, Goal
from ajuste.design.search.sampler import Point, Space, Tried
from ajuste.model.metric import Metric
from ajuste.model.trial import Trial
from ajuste.model.tunable import same_value
from ajuste.model.tuning import KeptLimit
from ajuste.model.verdict import Verdict

BROKEN_BY = 1.0
"""How far a configuration that cannot be measured counts as beyond every constraint."""


@dataclass(frozen=True)
class Suggestion:
    """A suggested configuration: its place in the space and its levels by factor."""

    name: str
    point: Point
    levels: Mapping[str, str]


@dataclass(frozen=True)
class Ledger:
    """The metrics of each clean trial by block and name.

    Configurations that became the same have one name: ``same`` says which, ``levels`` what its levels became.
    ``hopeless`` were tried and never measured.
    """

    baseline: str
    blocks: Mapping[int, Mapping[str, Mapping[str, float]]]
    levels: Mapping[str, Mapping[str, str]]
    same: Mapping[str, str]
    hopeless: frozenset[str]

    def since(self, block: int) -> Ledger:
        later = {number: by_name for number, by_name in self.blocks.items() if number >= block}
        return Ledger(self.baseline, later, self.levels, self.same, self.hopeless)

    def values(self, name: str, column: str) -> NDArray[np.float64]:
        """Return all values of a metric under a configuration, in block order."""
        of_name = (by_name[name] for by_name in self.blocks.values() if name in by_name)
        return np.array([metrics[column] for metrics in of_name if column in metrics], np.float64)

    def changes(self, name: str, metric: Metric, against: str | None = None) -> NDArray[np.float64]:
        """Return how much worse than ``against`` (the baseline) in each common block, as log ratio or difference."""
        other = against or self.baseline
        pairs = [
            (by_name[other][metric.column], by_name[name][metric.column])
            for by_name in self.blocks.values()
            if all(metric.column in by_name.get(each, {}) for each in (name, other))
        ]
        table = np.array(pairs, np.float64).reshape(-1, 2)
        worse = np.log(table[:, 1] / table[:, 0]) if self.as_ratio(metric) else table[:, 1] - table[:, 0]
        return -worse if metric.direction == "higher" else worse

    def as_ratio(self, metric: Metric) -> bool:
        """Return whether a metric is compared by ratios: no value of it is 0 or negative."""
        column = metric.column
        return metric.scale == "ratio" and all(
            figures.get(column, 1.0) > 0 for by_name in self.blocks.values() for figures in by_name.values()
        )

    def level(self, name: str, metric: Metric) -> float:
        """Return the mean or quantile of a metric under a configuration; NaN where it was not measured."""
        values = self.values(name, metric.column)
        if not len(values):
            return math.nan
        return float(np.mean(values) if metric.quantile is None else np.quantile(values, metric.quantile))

    def excess(self, name: str, limit: Constraint) -> float:
        """Return how far a configuration is beyond a limit; relative ones in blocks that have the baseline too."""
        if not limit.relative or limit.metric.quantile is not None:
            value = limit.excess(self.level(name, limit.metric), self.level(self.baseline, limit.metric))
            return BROKEN_BY if math.isnan(value) else value
        changes = self.changes(name, limit.metric.model_copy(update={"direction": "lower"}))
        if not len(changes):
            return BROKEN_BY
        away = float(np.mean(changes)) - math.log(limit.bound)
        return away if limit.upper else -away


def build_ledger(
    trials: Iterable[Trial],
    asked: Mapping[str, Suggestion],
    baseline: str,
    find_name: Callable[[Mapping[str, str]], str | None] = lambda _: None,
) -> Ledger:
    """Return the ledger of ``trials``, in the order of the design; ``asked`` has every configuration by its name.

    What the kernel made another configuration has the name of that one, which ``find_name`` finds by its levels; if no
    suggestion can have these, the name of what became it first.
    """
    same: dict[str, str] = {}
    first: dict[tuple[tuple[str, str], ...], str] = {}
    levels: dict[str, Mapping[str, str]] = {baseline: asked[baseline].levels}
    blocks: dict[int, dict[str, Mapping[str, float]]] = {}
    seen: set[str] = set()
    for trial in trials:
        name = trial.slot.configuration
        seen.add(name)
        if trial.status != "ok" or trial.slot.warm_up:
            continue
        if name not in same:
            became = levels_read_back(trial, asked[name].levels)
            key = tuple(sorted(became.items()))
            if key not in first:
                changed = any(not same_value(became[factor], level) for factor, level in asked[name].levels.items())
                first[key] = (find_name(became) if changed else None) or name
            same[name] = first[key]
            same.setdefault(first[key], first[key])
            levels.setdefault(same[name], became)
        blocks.setdefault(trial.slot.block, {}).setdefault(same[name], trial.metrics)
    return Ledger(baseline, blocks, levels, same, frozenset(seen - set(same)))


def levels_read_back(trial: Trial, levels: Mapping[str, str]) -> dict[str, str]:
    """Return the levels as the kernel had them: as read back where that differs from what was written."""
    read = {write.tunable: write for write in trial.written}
    return {
        name: read[name].after if name in read and not same_value(read[name].after, read[name].asked) else level
        for name, level in levels.items()
    }


def tried(ledger: Ledger, asked: Mapping[str, Suggestion], space: Space, goal: Goal) -> dict[str, Tried]:
    """Return what a sampler learns of each suggested configuration by its name, in that order; the baseline first.

    A configuration that could not be measured counts as bad as the worst, and as beyond every constraint.
    """
    names = [name for name in asked if name in ledger.same or name in ledger.hopeless]
    variances = tuple(_variance(ledger, metric) for metric in goal.objectives)
    points: dict[str, Tried] = {}
    for name in names:
        same = ledger.same.get(name)
        changes = [ledger.changes(same, metric) for metric in goal.objectives] if same else []
        if same is None or not all(map(len, changes)):
            continue
        points[name] = Tried(
            point=asked[name].point,
            row=space.row(dict(ledger.levels[same])),
            values=tuple(float(np.mean(change)) for change in changes),
            variances=variances,
            excess=tuple(ledger.excess(same, limit) for limit in goal.limits),
            runs=min(map(len, changes)),
        )
    worst = tuple(
        max((point.values[place] for point in points.values()), default=0.0) for place in range(len(goal.objectives))
    )
    for name in names:
        if name not in points:
            row = space.row(dict(asked[name].levels))
            excess = (BROKEN_BY,) * len(goal.limits)
            points[name] = Tried(asked[name].point, row, worst, variances, excess)
    return {name: points[name] for name in names}


def _variance(ledger: Ledger, metric: Metric) -> float:
    # Return the variance of a single comparison within a block, from all with several; 0 where there is none.
    names = {name for by_name in ledger.blocks.values() for name in by_name if name != ledger.baseline}
    squares, freedom = 0.0, 0
    for name in sorted(names):
        changes = ledger.changes(name, metric)
        if len(changes) > 1:
            squares += float(np.sum((changes - np.mean(changes)) ** 2))
            freedom += len(changes) - 1
    return squares / freedom if freedom else 0.0


def kept_limits(
    limits: Sequence[Constraint], names: Sequence[str], verdicts: Sequence[Verdict], trials: Trials, alpha: float
) -> tuple[KeptLimit, ...]:
    """Check every limit for each of ``names``: by the ``verdicts`` if relative, else by intervals of ``trials``."""
    clean = clean_trials(trials)
    kept = []
    for name in names:
        for limit in limits:
            if limit.relative:
                verdict = next(v for v in verdicts if v.configuration == name and v.metric == limit.metric.name)
                three = (
                    (verdict.estimate, verdict.low, verdict.high) if verdict.scale == "ratio" else (None, None, None)
                )
            else:
                three = _absolute(limit, clean.values(name, limit.metric.column), alpha)
            estimate, low, high = three
            kept.append(
                KeptLimit(
                    configuration=name,
                    text=limit.text,
                    metric=limit.metric.name,
                    unit=limit.metric.unit,
                    relative=limit.relative,
                    bound=limit.bound,
                    estimate=estimate,
                    low=low,
                    high=high,
                    holds=_holds(limit, low, high),
                )
            )
    return tuple(kept)


def _absolute(
    limit: Constraint, values: NDArray[np.float64], alpha: float
) -> tuple[float | None, float | None, float | None]:
    if not len(values):
        return None, None, None
    interval = estimate_interval(values, limit.metric, alpha)
    finite = [point if math.isfinite(point) else None for point in (interval.low, interval.high)]
    return interval.mean, finite[0], finite[1]


def _holds(limit: Constraint, low: float | None, high: float | None) -> Literal["yes", "no", "unknown"]:
    within, beyond = (high, low) if limit.upper else (low, high)
    sign = 1 if limit.upper else -1
    if within is not None and sign * within <= sign * limit.bound:
        return "yes"
    return "no" if beyond is not None and sign * beyond > sign * limit.bound else "unknown"

"""The phases of a search: many points are tried, the promising ones are replicated, the best is checked afresh."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste.model.error import RequestError
from ajuste.model.metric import Metric
from ajuste.model.trial import Trial
from ajuste.model.tunable import same_value
from ajuste_search.tuning.goal import Constraint, Goal
from ajuste_search.tuning.model import ExpectedMap, Importance
from ajuste_search.tuning.sampler import Point, Space, Tried, front
from ajuste_search.tuning.surrogate import Surrogate, Table, first_points
from ajuste_stats.confidence_sequences import mean_interval

# Measurements of a search so far, by block and by the levels that the kernel had.


FEWEST_TRIALS: Final = 30
"""Fewest trials of a search: with fewer, not much is tried before what was found has to be checked."""

BROKEN_BY = 1.0
"""Excess over every constraint of a configuration that cannot be measured."""

AT_ONCE: Final = 4
"""New points that share a block with the baseline."""

REPLICATED: Final = 4
"""Promising points that are replicated."""

ROUNDS: Final = 5
"""The most blocks of replication."""

CHECKED: Final = 3
"""Points of a front that are checked."""

CHECK_BLOCKS: Final = 29
"""Blocks of the check for which trials are kept back: the seeds that *equivalent* needs in a guest."""

FEWEST_CHECK_BLOCKS: Final = 6
"""Fewer allow no verdict."""

MOST_POINTS: Final = 900
"""Maximum number of points of the thinned lattice on which surfaces are drawn."""

MOST_AXES: Final = 9
"""Maximum number of axes: with more, even two levels of each are too many points."""

DRAWS: Final = 200


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
    suggestions: Mapping[str, Suggestion],
    baseline: str,
    find_name: Callable[[Mapping[str, str]], str | None],
) -> Ledger:
    """Return the ledger of ``trials``, in the order of the design; ``suggestions`` has every configuration by its name.

    What the kernel made another configuration has the name of that one, which ``find_name`` finds by its levels; if no
    suggestion can have these, the name of what became it first.
    """
    same: dict[str, str] = {}
    first: dict[tuple[tuple[str, str], ...], str] = {}
    levels: dict[str, Mapping[str, str]] = {baseline: suggestions[baseline].levels}
    blocks: dict[int, dict[str, Mapping[str, float]]] = {}
    seen: set[str] = set()
    for trial in trials:
        name = trial.slot.configuration
        seen.add(name)
        if trial.status != "ok" or trial.slot.warm_up:
            continue
        if name not in same:
            became = levels_read_back(trial, suggestions[name].levels)
            key = tuple(sorted(became.items()))
            if key not in first:
                changed = any(
                    not same_value(became[factor], level) for factor, level in suggestions[name].levels.items()
                )
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


def tried(ledger: Ledger, suggestions: Mapping[str, Suggestion], space: Space, goal: Goal) -> dict[str, Tried]:
    """Return what a sampler learns of each suggested configuration by its name, in that order; the baseline first.

    A configuration that could not be measured counts as bad as the worst, and as beyond every constraint.
    """
    names = [name for name in suggestions if name in ledger.same or name in ledger.hopeless]
    variances = tuple(_variance(ledger, metric) for metric in goal.objectives)
    points: dict[str, Tried] = {}
    for name in names:
        same = ledger.same.get(name)
        changes = [ledger.changes(same, metric) for metric in goal.objectives] if same else []
        if same is None or not all(map(len, changes)):
            continue
        points[name] = Tried(
            point=suggestions[name].point,
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
            row = space.row(dict(suggestions[name].levels))
            excess = (BROKEN_BY,) * len(goal.limits)
            points[name] = Tried(suggestions[name].point, row, worst, variances, excess)
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


@dataclass(frozen=True)
class Allotment:
    """Trials for exploring, those left when replicating ends, and those of the ``first`` block with the baseline."""

    explore: int
    check: int
    first: int


def allotment(trials: int, axes: int, objectives: int, min_blocks: int) -> Allotment:
    """Share out ``trials``; those that elimination saves go to the check. Raises RequestError for too few."""
    finalists = 1 if objectives == 1 else CHECKED
    check = (1 + finalists) * max(CHECK_BLOCKS, min_blocks)
    replicate = (1 + REPLICATED) * ROUNDS
    first = first_points(axes)
    if trials < FEWEST_TRIALS:
        raise RequestError(f"{trials} trials are too few to search and to check; expected {FEWEST_TRIALS} at least")
    if trials >= check + replicate + first:
        return Allotment(trials - check - replicate, check, first)
    # Few trials: each phase gets its share.
    check = max((1 + finalists) * max(min_blocks, FEWEST_CHECK_BLOCKS), trials // 3)
    explore = max(1 + AT_ONCE, (trials - check) * 2 // 3)
    if explore + check > trials:
        least = check + 1 + AT_ONCE
        raise RequestError(f"{trials} trials are too few: the check alone takes {check}; expected {least} at least")
    return Allotment(explore, check, min(first, explore))


def promising(tried: Mapping[str, Tried], baseline: str, objectives: int) -> list[str]:
    """Return the names in ``tried`` that are worth replicating.

    The best by a model's expectation, and the best as measured; of several objectives the front. Where nothing keeps
    the constraints, the nearest to them.
    """
    names = [name for name in tried if name != baseline]
    allowed = [name for name in names if tried[name].allowed]
    if not allowed:
        return sorted(names, key=lambda name: (tried[name].violation, tried[name].values))[:REPLICATED]
    if objectives > 1:
        return spread(_on_front(tried, allowed), REPLICATED)
    rows = np.array([point.row for point in tried.values()])
    values = [point.values[0] for point in tried.values()]
    errors = [(point.variances or (0.0,))[0] / point.runs for point in tried.values()]
    expected = dict(zip(tried, Surrogate(rows, values, errors).predict(rows)[0], strict=True))
    best = min(allowed, key=lambda name: tried[name].values[0])
    others = sorted((name for name in allowed if name != best), key=lambda name: expected[name])
    return [best, *others[: REPLICATED - 1]]


def _on_front(tried: Mapping[str, Tried], names: Sequence[str]) -> list[str]:
    by_values = {tried[name].values: name for name in reversed(names)}
    return [by_values[point.values] for point in front([tried[name] for name in names])]


def spread(names: Sequence[str], most: int) -> list[str]:
    """Return at most ``most`` of ``names`` (in order along a front), its ends among them."""
    if len(names) <= most:
        return list(names)
    places = np.linspace(0, len(names) - 1, most)
    return [names[round(float(place))] for place in places]


def survivors(
    names: Sequence[str], ledger: Ledger, goal: Goal, *, confidence: float, smallest_effect: float
) -> list[str]:
    """Return those of ``names`` that may still be the best, by the blocks of ``ledger`` alone.

    For one objective those whose anytime-valid interval against the leader does not exclude it; only the leader, if no
    other is distinguishable from it by what matters. Of several objectives all.
    """
    allowed = [name for name in names if all(ledger.excess(name, limit) <= 0 for limit in goal.limits)]
    if len(goal.objectives) > 1 or not allowed:
        return list(names)
    metric = goal.objectives[0]
    leader = min(allowed, key=lambda name: _mean(ledger, name, goal))
    alpha = (1 - confidence) / max(1, len(names) - 1)
    zone = math.log1p(smallest_effect)
    left, open_ones = [], False
    for name in names:
        if name == leader:
            left.append(name)
            continue
        changes = ledger.changes(name, metric, against=leader)
        interval = mean_interval(changes, alpha=alpha, floor=1e-18) if len(changes) else None
        if interval is None or interval.low <= 0:
            left.append(name)
            same = interval is not None and ledger.as_ratio(metric) and -zone < interval.low and interval.high < zone
            open_ones = open_ones or not same
    return left if open_ones else [leader]


def finalists(names: Sequence[str], tried: Mapping[str, Tried], objectives: int) -> list[str]:
    """Return what is checked: the best of ``names``, of several objectives the front, or the nearest to the limits."""
    allowed = [name for name in names if tried[name].allowed]
    if not allowed:
        return [min(names, key=lambda name: (tried[name].violation, tried[name].values))]
    if objectives > 1:
        return spread(_on_front(tried, allowed), CHECKED)
    return [min(allowed, key=lambda name: tried[name].values[0])]


def _mean(ledger: Ledger, name: str, goal: Goal) -> float:
    changes = ledger.changes(name, goal.objectives[0])
    return float(np.mean(changes)) if len(changes) else math.inf


def importances(space: Space, surface: Surrogate, seed: int) -> tuple[Importance, ...]:
    """Return the total-effect Sobol' index of every factor over the lattice, most important first.

    Computed for each of many surfaces drawn from the model: their median is the share, their middle 95 % the interval.
    Empty where nothing varies, and of more factors than can be drawn. Source: Homma and Saltelli (1996), "Importance
    measures in global sensitivity analysis of nonlinear models".
    """
    if surface.flat or len(space.axes) > MOST_AXES:
        return ()
    lines = _thinned(space)
    grid = [tuple(line[at] for line, at in zip(lines, place, strict=True)) for place in np.ndindex(*map(len, lines))]
    draws = surface.draws(space.rows(grid), DRAWS, seed).reshape(DRAWS, *map(len, lines))
    whole = draws.var(axis=tuple(range(1, draws.ndim)))
    whole[whole == 0] = 1.0
    indices = []
    for place, axis in enumerate(space.axes):
        shares = draws.var(axis=1 + place).reshape(DRAWS, -1).mean(axis=1) / whole
        low, middle, high = (float(np.quantile(shares, q)) for q in (0.025, 0.5, 0.975))
        indices.append(Importance(factor=axis.name, share=middle, low=low, high=high))
    return tuple(sorted(indices, key=lambda importance: -importance.share))


def expected_map(
    space: Space, surface: Surrogate, order: tuple[Importance, ...], at: Point, natural: Callable[[float], float]
) -> ExpectedMap | None:
    """Return expected values over the two most important ordered factors, others as ``at``; ``None`` without two."""
    ranks = {importance.factor: place for place, importance in enumerate(order)}
    ordered = [place for place, axis in enumerate(space.axes) if axis.scale != "none"]
    if len(ordered) < 2:
        return None
    first, second = sorted(sorted(ordered, key=lambda place: ranks.get(space.axes[place].name, place))[:2])
    down, across = space.axes[first], space.axes[second]
    points = []
    for row in range(len(down.levels)):
        for column in range(len(across.levels)):
            point = list(at)
            point[first], point[second] = row, column
            points.append(tuple(point))
    mean, _ = surface.predict(space.rows(points))
    table: Table = mean.reshape(len(down.levels), len(across.levels))
    return ExpectedMap(
        down=down.name,
        across=across.name,
        down_levels=down.levels,
        across_levels=across.levels,
        expected=tuple(tuple(natural(float(value)) for value in line) for line in table),
    )


def _thinned(space: Space) -> list[list[int]]:
    # Return levels of each axis, evenly spread, so few that all combinations can be drawn.
    counts = [len(axis.levels) for axis in space.axes]
    while math.prod(counts) > MOST_POINTS:
        largest = max(range(len(counts)), key=lambda place: counts[place])
        counts[largest] = max(2, counts[largest] - 1)
    return [
        [round(float(place)) for place in np.linspace(0, len(axis.levels) - 1, count)]
        for axis, count in zip(space.axes, counts, strict=True)
    ]

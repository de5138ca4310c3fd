"""The phases of a search: many points are tried, the promising ones are replicated, the best is checked afresh."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ajuste.analysis.search.ledger import Ledger
from ajuste.analysis.sequence import mean_interval
from ajuste.design.search.goal import FEWEST_TRIALS, Goal
from ajuste.design.search.sampler import Point, Space, Tried, front
from ajuste.design.search.surrogate import Surrogate, Table, first_points
from ajuste.model.error import RequestError
from ajuste.model.tuning import ExpectedMap, Importance

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


MOST_POINTS: Final = 900
"""Of the thinned lattice on which surfaces are drawn."""
MOST_AXES: Final = 9
"""With more, even two levels of each are too many points."""
DRAWS: Final = 200


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

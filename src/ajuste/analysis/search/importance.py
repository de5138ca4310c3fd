"""Which factors matter, and what is expected where: by the model of a search."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from ajuste.design.search.space import Point, Space
from ajuste.design.search.surrogate import Surrogate, Table
from ajuste.model.tuning import ExpectedMap, Importance

MOST_POINTS: Final = 900
"""Of the lattice, thinned out, on which surfaces are drawn."""
MOST_AXES: Final = 9
"""With more, even two levels of each are too many points."""
DRAWS: Final = 200


def importances(space: Space, surface: Surrogate, seed: int) -> tuple[Importance, ...]:
    """The total-effect Sobol' index of every factor, over the lattice, most important first.

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
    found = []
    for place, axis in enumerate(space.axes):
        shares = draws.var(axis=1 + place).reshape(DRAWS, -1).mean(axis=1) / whole
        low, middle, high = (float(np.quantile(shares, q)) for q in (0.025, 0.5, 0.975))
        found.append(Importance(factor=axis.name, share=middle, low=low, high=high))
    return tuple(sorted(found, key=lambda one: -one.share))


def expected_map(
    space: Space, surface: Surrogate, order: tuple[Importance, ...], at: Point, natural: Callable[[float], float]
) -> ExpectedMap | None:
    """Over the two most important factors that have an order, all others as ``at``; ``None`` with fewer than two."""
    ranks = {one.factor: place for place, one in enumerate(order)}
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
    """Levels of each axis, evenly spread, so few that all combinations can be drawn."""
    counts = [len(axis.levels) for axis in space.axes]
    while math.prod(counts) > MOST_POINTS:
        largest = max(range(len(counts)), key=lambda place: counts[place])
        counts[largest] = max(2, counts[largest] - 1)
    return [
        [round(float(place)) for place in np.linspace(0, len(axis.levels) - 1, count)]
        for axis, count in zip(space.axes, counts, strict=True)
    ]

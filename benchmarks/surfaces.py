"""Rates at which the set of the best lacks the truly best configuration, and at which noise divides a flat curve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ajuste_stats.best_sets import best_set
from ajuste_stats.block_tables import Blocks
from ajuste_stats.regions import GridLine, Stretch, regions
from benchmarks.comparison import Comparison

STUDIES: Final = 200
SIZES: Final = (12, 30)
LOOKS: Final = (3, 4, 5, 7, 10)
CURVES: Final = 1_000
ALPHA: Final = 0.05
CLOSE: Final = 0.0005  # how much worse than the best all others are, in logarithms


def measure() -> tuple[Comparison, ...]:
    """The set is looked at again and again, as a study does; curves once."""
    return _best_sets(), _flat_curves()


def _best_sets() -> Comparison:
    kinds = list(_noise(2))
    figures = {kind: [_left_out(_noise(size)[kind], seed) for seed, size in enumerate(SIZES)] for kind in kinds}
    return Comparison(
        name="best-set",
        what=f"{STUDIES} studies of {' and '.join(map(str, SIZES))} configurations that hardly differ, looked at after "
        f"{', '.join(map(str, LOOKS))} blocks: the best one is ever left out",
        unit="%",
        figures=figures,
        goal=f"at most {100 * ALPHA:g} % for every kind of noise",
        reached=all(value <= 100 * ALPHA for values in figures.values() for value in values),
    )


def _noise(size: int) -> Mapping[str, NDArray[np.float64]]:
    """Standard deviations of configurations; the first one is the best."""
    return {
        "equal noise": np.full(size, 0.02),
        "the best is five times as noisy": np.array([0.05, *[0.01] * (size - 1)]),
        "every other is five times as noisy": np.where(np.arange(size) % 2, 0.01, 0.05),
        "noise falls twentyfold": np.geomspace(0.1, 0.005, size),
        "noise rises twentyfold": np.geomspace(0.005, 0.1, size),
    }


def _left_out(noise: NDArray[np.float64], seed: int) -> float:
    random = np.random.default_rng(seed)
    size = len(noise)
    truth = np.where(np.arange(size) > 0, CLOSE, 0.0)[:, None]
    names = tuple(map(str, range(size)))
    missed = 0
    for _ in range(STUDIES):
        values = truth + random.normal(0, 1, LOOKS[-1]) + noise[:, None] * random.normal(size=(size, LOOKS[-1]))
        blocks = Blocks(names, values, "ratio", np.full(size, 1e-12))
        looks = (replace(blocks, values=values[:, :seen]) for seen in LOOKS)
        missed += any(0 not in best_set(look, "lower", ALPHA).members for look in looks)
    return 100 * missed / STUDIES


def _flat_curves() -> Comparison:
    figures = {f"{points} levels": [_divided(points)] for points in (5, 10, 20)}
    return Comparison(
        name="regions",
        what=f"{CURVES} flat curves with noise: divided, or not called flat",
        unit="%",
        figures=figures,
        goal=f"at most {100 * ALPHA:g} %",
        reached=all(value <= 100 * ALPHA for values in figures.values() for value in values),
    )


def _divided(points: int) -> float:
    """The noise is known as well as three blocks tell it."""
    random = np.random.default_rng(points)
    freedom = 2 * points
    x = np.linspace(0, 1, points)
    wrong = 0
    for _ in range(CURVES):
        error = np.full(points, np.sqrt(random.chisquare(freedom) / freedom))
        line = GridLine(x, random.normal(size=points), error, freedom)
        wrong += regions(line, alpha=ALPHA, margin=0.0) != (Stretch(0, points - 1, "flat"),)
    return 100 * wrong / CURVES

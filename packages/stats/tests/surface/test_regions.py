"""Regions of curves whose change points are known, and how often noise makes regions where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ajuste_stats.regions import GridLine, Stretch, regions

X = np.linspace(0, 1, 13)


def line(y: NDArray[np.float64], noise: float = 0.01, seed: int = 1) -> GridLine:
    random = np.random.default_rng(seed)
    return GridLine(X[: len(y)], y + random.normal(0, noise, len(y)), np.full(len(y), noise), 50)


def shapes(grid_line: GridLine, margin: float = 0.0) -> list[tuple[str, int, int]]:
    return [(part.shape, part.start, part.end) for part in regions(grid_line, alpha=0.05, margin=margin)]


def test_a_fall_that_ends() -> None:
    assert shapes(line(0.6 * np.maximum(0, 0.5 - X))) == [("fast fall", 0, 6), ("flat", 6, 12)]


def test_a_fall_that_becomes_slow() -> None:
    y = np.where(X < 0.25, 1 - 3 * X, 0.25 - 0.3 * (X - 0.25))
    assert shapes(line(y)) == [("fast fall", 0, 3), ("slow fall", 3, 12)]


def test_a_valley() -> None:
    assert shapes(line(0.6 * np.abs(X - 0.5))) == [("fall", 0, 6), ("rise", 6, 12)]


def test_an_oscillation_that_dies_away() -> None:
    y = np.where(np.arange(13) < 7, 0.1 * (-1.0) ** np.arange(13), 0.1)
    assert shapes(line(y)) == [("oscillating", 0, 6), ("flat", 6, 12)]


def test_what_is_too_small_to_matter_is_flat() -> None:
    slope = line(0.04 * X, noise=1e-4)
    assert shapes(slope) == [("rise", 0, 12)]
    assert shapes(slope, margin=0.05) == [("flat", 0, 12)]


@pytest.mark.parametrize("points", [5, 13])
def test_noise_makes_no_regions(points: int) -> None:
    wrong = sum(
        regions(line(np.zeros(points), seed=seed), alpha=0.05, margin=0.0) != (Stretch(0, points - 1, "flat"),)
        for seed in range(200)
    )
    assert wrong <= 16  # 5 % of 200, and twice the standard deviation of that


def test_too_few_points_and_unknown_noise_have_no_regions() -> None:
    assert regions(line(np.array([1.0, 0.5, 0.1])), alpha=0.05, margin=0.0) == ()
    assert regions(GridLine(X, -X, np.full(13, 0.01), 0), alpha=0.05, margin=0.0) == ()

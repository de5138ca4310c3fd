"""Refinement finds the same picture from far fewer trials than the whole grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest

from ajuste.model.trial import Configuration, Factor
from ajuste_search.refinement.grid import Grid, SampledPoint, build_grid, known, surface_over

Shape = Callable[[np.ndarray, np.ndarray], np.ndarray]

SHAPES: dict[str, Shape] = {
    "bowl": lambda x, y: 0.3 * ((x - 0.6) ** 2 + (y - 0.3) ** 2),
    "fast fall": lambda x, y: 0.5 * np.exp(-8 * x) * (1 - y / 2) + 0.05 * y,
    "ripple": lambda x, y: 0.08 * np.sin(9 * x) + 0.1 * y,
    "ridge": lambda x, y: 0.45 * np.exp(-12 * y) * (0.3 + 0.7 * np.exp(-3 * x)),
    "step": lambda x, y: 0.3 / (1 + np.exp(-25 * (x - 0.45))) + 0.1 * x * y,
}


def grid(across: int, down: int) -> Grid:
    first, second = (
        Factor(name=name, levels=tuple(map(str, range(count))), baseline="0")
        for name, count in (("m", across), ("w", down))
    )
    return build_grid(
        (first, second),
        [
            Configuration(name=f"{m} {w}", levels={"m": m, "w": w}, baseline=m == w == "0")
            for m, w in product(first.levels, second.levels)
        ],
    )


@dataclass
class Outcome:
    trials: int
    measured: set[str]
    per_point: dict[str, int]
    worst_error: float
    ended: bool


def explored(shape: Shape, *, noise: float | Callable[[str], float] = 0.005, allowed: float = 0.03) -> Outcome:
    """A study of a 20 × 20 grid played through: two coarse blocks, then what refinement asks for."""
    of, random = grid(20, 20), np.random.default_rng(7)
    spread = noise if callable(noise) else lambda _: noise
    truth: Any = shape(of.points[:, 0], of.points[:, 1])
    truth = dict(zip(of.names, truth - truth[of.names.index(of.baseline)], strict=True))
    values: dict[str, list[float]] = {}
    counts: dict[str, int] = {}
    roster, surface = of.coarse, None
    for block in range(40):
        for name in roster:
            counts[name] = counts.get(name, 0) + 1
            if name != of.baseline:
                values.setdefault(name, []).append(truth[name] + random.normal(0, spread(name)))
        if block:
            surface = known(of, [SampledPoint(values, allowed)])
            if surface.worst <= 1:
                break
            roster = surface.following
    assert surface is not None
    guess = surface_over(of, SampledPoint(values, allowed)).mean
    error = float(np.max(np.abs(guess - np.array(list(truth.values())))))
    return Outcome(sum(counts.values()), set(counts), counts, error, surface.worst <= 1)


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_picture_from_a_fraction_of_the_trials(name: str) -> None:
    outcome = explored(SHAPES[name])
    assert outcome.ended
    assert outcome.worst_error < 0.03
    assert outcome.trials < 2 * 400 / 5, "the whole grid in two blocks has 800"


def test_points_are_added_where_it_bends() -> None:
    outcome = explored(SHAPES["fast fall"])
    added = [tuple(map(int, name.split())) for name in outcome.measured - set(grid(20, 20).coarse)]
    assert sum(m < 10 for m, _ in added) > sum(m >= 10 for m, _ in added)


def test_more_trials_are_where_the_noise_is_large() -> None:
    outcome = explored(SHAPES["bowl"], noise=lambda name: 0.08 if int(name.split()[1]) < 5 else 0.002)
    noisy = sum(count for name, count in outcome.per_point.items() if int(name.split()[1]) < 5)
    assert noisy / 5 > 2 * (outcome.trials - noisy) / 15, "trials in each of its 5 rows, and in each of the other 15"
    assert max(outcome.per_point.values()) > 2


def test_a_flat_surface_ends_with_the_coarse_grid() -> None:
    outcome = explored(lambda x, y: 0 * x)
    assert outcome.measured == set(grid(20, 20).coarse)


def test_the_coarse_grid_has_the_corners_and_the_baseline() -> None:
    of = grid(20, 3)
    assert {"0 0", "19 0", "0 2", "19 2"} <= set(of.coarse)
    assert of.baseline in of.coarse
    assert len(of.coarse) == 6 * 3


def test_each_block_has_the_baseline_and_no_more_points_than_a_batch() -> None:
    of = grid(9, 9)
    surface = known(of, [SampledPoint({"8 8": [0.5, 0.4], "0 8": [0.1, 0.2]}, 0.01)])
    assert of.baseline in surface.following
    assert 2 <= len(surface.following) <= 1 + of.batch
    assert (surface.measured, surface.points) == (3, 81)


def test_what_was_given_up_is_not_asked_for_again() -> None:
    of = grid(4, 4)
    measured = SampledPoint({"3 3": [0.5, 0.4]}, 0.01)
    wanted = set(known(of, [measured]).following)
    assert not (wanted - {of.baseline}) & set(known(of, [measured], wanted - {of.baseline}).following)


def test_the_worst_of_several_metrics_counts() -> None:
    of = grid(6, 6)
    flat = SampledPoint({name: [0.0, 0.0] for name in of.coarse if name != of.baseline}, 0.03)
    open_one = SampledPoint(
        {name: [0.3 * (place % 2), 0.3 * (place % 2)] for place, name in enumerate(flat.values)}, 0.03
    )
    assert known(of, [flat]).worst <= 1
    assert known(of, [flat, open_one]).worst == known(of, [open_one, flat]).worst > 1

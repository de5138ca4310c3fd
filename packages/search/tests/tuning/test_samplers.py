"""Samplers: whatever they are, they suggest what is new, do the same again, and learn if they are to."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import get_args

import pytest

from ajuste.model.search import SamplerName
from ajuste.model.trial import Factor
from ajuste_search.tuning.sampler import Point, SamplerTask, Tried, build_space
from ajuste_search.tuning.samplers import make_sampler

LEVELS = tuple(str(number) for number in range(1, 11))
SPACE = build_space([Factor(name=name, levels=LEVELS, baseline="1") for name in ("a", "b")])
NAMES = get_args(SamplerName)


def bowl(point: Point) -> float:
    return (point[0] - 7) ** 2 + 2 * (point[1] - 2) ** 2


def searched(
    name: SamplerName, surface: Callable[[Point], float], *, seed: int = 1, trials: int = 18, at_once: int = 3
) -> list[Tried]:
    sampler = make_sampler(name, SamplerTask(SPACE, seed, trials))
    tried: list[Tried] = []
    while len(tried) < trials:
        for point in sampler.suggest(tried, at_once):
            tried.append(Tried(point, SPACE.row(SPACE.point_levels(point)), (surface(point),)))
    return tried


@pytest.mark.parametrize("name", NAMES)
def test_what_is_suggested_is_new_and_the_same_again(name: SamplerName) -> None:
    points = [trial.point for trial in searched(name, bowl)]
    assert len(set(points)) == len(points) == 18
    assert points == [trial.point for trial in searched(name, bowl)]
    assert points != [trial.point for trial in searched(name, bowl, seed=2)]


@pytest.mark.parametrize("name", NAMES)
def test_a_space_ends(name: SamplerName) -> None:
    small = build_space([Factor(name="a", levels=("on", "off", "auto"), baseline="on")])
    sampler = make_sampler(name, SamplerTask(small, 1, 9))
    tried = [Tried((0,), (1.0, 0.0, 0.0), (0.0,))]
    suggested = sampler.suggest(tried, 9)
    assert sorted(suggested) == [(1,), (2,)]
    tried += [Tried(point, small.row(small.point_levels(point)), (1.0,)) for point in suggested]
    assert sampler.suggest(tried, 4) == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_known_to_become_something_tried_is_not_suggested(name: SamplerName) -> None:
    taken = {(place, column) for place in range(5, 10) for column in range(10)}
    sampler = make_sampler(name, SamplerTask(SPACE, 1, 20))
    assert not taken & set(sampler.suggest([], 10, taken))


def test_the_default_finds_the_bottom_of_a_bowl_among_a_hundred_points_with_few_trials() -> None:
    assert all(
        min(trial.values[0] for trial in searched("gp", bowl, seed=seed, trials=16, at_once=1)) == 0
        for seed in range(2)
    )


def test_a_flat_surface_is_searched_like_any_other() -> None:
    assert len(searched("gp", lambda _: 1.0)) == 18


def test_a_point_that_breaks_a_constraint_draws_nothing() -> None:
    """The bottom of the bowl is forbidden: what the sampler tries is soon on this side of the limit."""
    sampler = make_sampler("gp", SamplerTask(SPACE, 1, 24, constraints=1))
    tried: list[Tried] = []
    while len(tried) < 24:
        for point in sampler.suggest(tried, 2):
            row = SPACE.row(SPACE.point_levels(point))
            tried.append(Tried(point, row, (bowl(point),), excess=(point[0] - 4.5,)))
    allowed = [trial for trial in tried if trial.allowed]
    assert min(trial.values[0] for trial in allowed) == bowl((4, 2))
    assert sum(not trial.allowed for trial in tried[-10:]) <= 3


def test_two_objectives_get_points_of_their_front() -> None:
    sampler = make_sampler("gp", SamplerTask(SPACE, 1, 24, objectives=2))
    tried: list[Tried] = []
    while len(tried) < 24:
        for point in sampler.suggest(tried, 2):
            values = (math.hypot(point[0] - 1, point[1] - 1), math.hypot(point[0] - 8, point[1] - 1))
            tried.append(Tried(point, SPACE.row(SPACE.point_levels(point)), values))
    on_front = [trial.point for trial in tried if trial.point[1] == 1 and 1 <= trial.point[0] <= 8]
    assert len(on_front) >= 5

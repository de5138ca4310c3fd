"""Ablations of lines whose effects are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest

from ajuste_stats.shapley import block_sums
from ajuste_stats.subsets import Subset, block_order, of_block, subsets

Game = Callable[[Subset], float]


def by_definition(game: Game, lines: int) -> list[float]:
    """Shapley values as the mean over all orders of what each line adds."""
    added = np.zeros(lines)
    for order in permutations(range(lines)):
        for place, line in enumerate(order):
            added[line] += game(frozenset(order[: place + 1])) - game(frozenset(order[:place]))
    return list(added / math.factorial(lines))


def values(game: Game, lines: int, blocks: int, noise: float = 0.0, seed: int = 1) -> np.ndarray:
    """Logarithms of what each block measures; blocks differ far more than runs scatter."""
    random = np.random.default_rng(seed)
    effects = np.array([game(subset) for subset in subsets(lines)])
    held = np.array([[subset in of_block(lines, block) for subset in subsets(lines)] for block in range(blocks)]).T
    scatter = noise * random.standard_normal(held.shape) + random.standard_normal(blocks)
    return np.where(held, effects[:, None] + scatter, np.nan)


def additive(**effects: float) -> Game:
    by_number = {int(name.removeprefix("line")): effect for name, effect in effects.items()}
    return lambda subset: sum(effect for line, effect in by_number.items() if line in subset)


def entangled(subset: Subset) -> float:
    """Single effects, interactions of two and one of three."""
    return (
        0.3 * (0 in subset)
        - 0.2 * (1 in subset)
        + 0.5 * ({0, 1} <= subset)
        - 0.4 * ({1, 2} <= subset)
        + 0.6 * ({0, 2, 3} <= subset)
    )


def pairwise(subset: Subset) -> float:
    return 0.3 * (0 in subset) + 0.5 * ({0, 1} <= subset) - 0.4 * ({1, 2} <= subset) + 0.1 * ({4, 6} <= subset)


@pytest.mark.parametrize("lines", [1, 3, 5])
def test_shares_of_few_lines_are_the_shapley_values_by_their_definition(lines: int) -> None:
    sums = block_sums(values(entangled, lines, 2), range(2), lines)
    np.testing.assert_allclose(sums["share"], np.array([by_definition(entangled, lines)] * 2).T, atol=1e-12)


def test_shares_of_many_lines_are_exact_in_each_block_where_only_two_interact() -> None:
    sums = block_sums(values(pairwise, 7, 4), range(4), 7)
    np.testing.assert_allclose(sums["share"], np.array([by_definition(pairwise, 7)] * 4).T, atol=1e-12)


def test_shares_of_many_lines_come_near_over_the_blocks_where_three_interact() -> None:
    sums = block_sums(values(entangled, 7, 20), range(20), 7)
    np.testing.assert_allclose(sums["share"].mean(axis=1), by_definition(entangled, 7), atol=0.05)


@pytest.mark.parametrize("lines", [4, 9])
def test_the_shares_of_a_block_add_up_to_what_the_whole_does_in_it(lines: int) -> None:
    measured = values(entangled, lines, 6, noise=0.1)
    sums = block_sums(measured, range(6), lines)
    np.testing.assert_allclose(sums["share"].sum(axis=0), measured[1] - measured[0], atol=1e-12)


def test_alone_and_last_are_the_pairs_that_they_say() -> None:
    measured = values(entangled, 7, 3, noise=0.1)
    place = {subset: row for row, subset in enumerate(subsets(7))}
    every = frozenset(range(7))
    sums = block_sums(measured, range(3), 7)
    np.testing.assert_allclose(sums["alone"][2], measured[place[frozenset({2})]] - measured[place[frozenset()]])
    np.testing.assert_allclose(sums["last"][2], measured[place[every]] - measured[place[every - {2}]])
    np.testing.assert_allclose(sums["between"], sums["last"] - sums["alone"])


def test_blocks_that_lack_something_are_left_out_of_what_needs_it_only() -> None:
    measured = values(additive(line1=-0.1), 8, 6)
    measured[subsets(8).index(frozenset({2})), 0] = np.nan
    sums = block_sums(measured, range(6), 8)
    order = block_order(8, 0)
    shares = 5 if 2 in (order[0], order[-1]) else 6
    assert [sums[kind].shape[1] for kind in ("share", "alone", "last", "between")] == [shares, 5, 6, 5]

"""The set of the best: it has the truly best one, and not what is clearly worse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ajuste_stats.best_sets import best_set

from .conftest import Draw

NEARLY_THE_SAME = np.concatenate([[0.0], np.full(5, 0.002), np.full(6, 0.3)])


ONE_NOISY = np.array([0.05, *[0.01] * 11])


@pytest.mark.parametrize("noise", [0.02, np.repeat([0.05, 0.01], 6), np.repeat([0.01, 0.05], 6), ONE_NOISY])
def test_the_truly_best_is_in_the_set(draw: Draw, noise: float) -> None:
    """Count every look at every number of blocks: to leave the best out once is wrong."""
    random = np.random.default_rng(11)
    missed = 0
    for _ in range(60):
        blocks = draw(random, NEARLY_THE_SAME, blocks=12, noise=noise)
        looks = (replace(blocks, values=blocks.values[:, :seen]) for seen in range(3, 13, 2))
        missed += any(0 not in best_set(look, "lower", 0.05).members for look in looks)
    assert missed <= 6  # 5 % of 60, and twice the standard deviation of that


def test_what_is_clearly_worse_is_not_in_it(draw: Draw) -> None:
    result = best_set(draw(np.random.default_rng(12), NEARLY_THE_SAME), "lower", 0.05)
    assert set(result.members) <= set(range(6))


def test_a_single_clear_winner_stands_alone(draw: Draw) -> None:
    truth = np.array([0.4, 0.0, 0.3, 0.5])
    result = best_set(draw(np.random.default_rng(13), truth), "lower", 0.05)
    assert (result.best, result.members) == (1, (1,))
    upside_down = best_set(draw(np.random.default_rng(13), -truth), "higher", 0.05)
    assert upside_down.members == (1,)


def test_three_blocks_of_many_configurations_are_enough(draw: Draw) -> None:
    """Noise is estimated from all configurations together."""
    truth = np.concatenate([[0.0], np.linspace(0.4, 0.9, 29)])
    assert best_set(draw(np.random.default_rng(17), truth, blocks=3), "lower", 0.05).members == (0,)


def test_few_blocks_leave_nothing_out(draw: Draw) -> None:
    result = best_set(draw(np.random.default_rng(14), NEARLY_THE_SAME, blocks=2), "lower", 0.05)
    assert len(result.members) == 12


def test_blocks_in_one_order_leave_nothing_out(draw: Draw) -> None:
    blocks = draw(np.random.default_rng(15), np.array([0.4, 0.0, 0.3]))
    always = np.repeat(np.arange(3.0)[:, None], 6, axis=1)
    assert best_set(replace(blocks, order=always), "lower", 0.05).members == (1, 2, 0)
    by_turns = np.where(np.arange(6) % 2, always, 2 - always)
    assert best_set(replace(blocks, order=by_turns), "lower", 0.05).members == (1,)


def test_what_was_never_in_one_block_cannot_be_told_apart(draw: Draw) -> None:
    blocks = draw(np.random.default_rng(16), np.array([0.0, 0.4]), blocks=10)
    values = blocks.values.copy()
    values[0, :5] = values[1, 5:] = np.nan
    assert set(best_set(replace(blocks, values=values), "lower", 0.05).members) == {0, 1}

"""Switchback experiments from arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from ajuste_stats import judge_switchback, order_of_block

Floats = NDArray[np.float64]


def slices(seed: int, blocks: int, effect: float = 0.0) -> tuple[Floats, list[str], list[int], Floats]:
    """A load that wanders, a value that follows it, and an effect of the treatment *new*."""
    random = np.random.default_rng(seed)
    treatments: list[str] = []
    numbers: list[int] = []
    for block in range(blocks):
        drawn = order_of_block(block, ["old", "new"], seed)
        treatments += drawn
        numbers += [block] * len(drawn)
    load = np.cumsum(random.normal(0, 0.1, len(treatments)))
    logs = 0.8 * load + random.normal(0, 0.02, len(load)) + effect * (np.array(treatments) == "new")
    return np.exp(logs), treatments, numbers, np.exp(load)


@pytest.mark.parametrize("studies", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_no_effect_is_called_one_in_at_most_5_percent_of_experiments_at_any_look(studies: int) -> None:
    wrong = 0
    for seed in range(studies):
        values, treatments, blocks, control = slices(seed, 60)
        words = set()
        for end in range(20, 121, 20):
            judged = judge_switchback(
                values[:end],
                treatments[:end],
                blocks[:end],
                baseline="old",
                direction="lower",
                control=control[:end] if seed % 2 else None,
            )
            words.add(judged["new"].word)
        wrong += bool(words & {"improves", "worsens"})
    assert wrong / studies <= stats.binom.ppf(0.999, studies, 0.05) / studies


def test_an_effect_is_found_sooner_at_equal_load() -> None:
    values, treatments, blocks, control = slices(3, 120, effect=-0.2)
    judged = judge_switchback(
        values, treatments, blocks, baseline="old", direction="lower", control=control, smallest_effect=0.02
    )["new"]
    assert judged.word == "improves"
    assert judged.decided
    assert judged.adjusted
    assert judged.effect is not None
    assert judged.effect.estimate == pytest.approx(np.exp(-0.2), rel=0.05)


def test_slices_that_do_not_count_are_left_out() -> None:
    values, treatments, blocks, _ = slices(4, 30)
    values[::7] = np.nan
    judged = judge_switchback(values, treatments, blocks, baseline="old")["new"]
    assert judged.effect is not None
    assert judged.effect.interval.n < 30
    assert judge_switchback(np.full(60, np.nan), treatments, blocks, baseline="old")["new"].effect is None


def test_a_gain_awaits_stays_where_they_are_asked_for() -> None:
    values, treatments, blocks, control = slices(3, 120, effect=-0.2)
    options: dict[str, Any] = dict(baseline="old", direction="lower", control=control, smallest_effect=0.02)
    judged = judge_switchback(values, treatments, blocks, stays=np.zeros(240), **options)["new"]
    assert judged.word == "undecided"
    assert judged.awaits_stays
    assert judged.more_blocks is not None


def test_what_does_not_match_is_refused() -> None:
    with pytest.raises(ValueError, match="blocks has the shape"):
        judge_switchback([1.0, 2.0], ["a", "b"], [0], baseline="a")
    with pytest.raises(ValueError, match="expected the baseline 'c'"):
        judge_switchback([1.0, 2.0], ["a", "b"], [0, 0], baseline="c")

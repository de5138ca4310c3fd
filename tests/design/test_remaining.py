"""Remaining part of a run, and how well it is estimated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ajuste.analysis.verdict import judge
from ajuste.design.blocks import members
from ajuste.design.stopping import remaining, reviews
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Slot, Trial
from ajuste.model.verdict import Verdict
from verdicts import verdict

ELAPSED = Metric(name="elapsed", title="elapsed time", unit="s", direction="lower")


@pytest.mark.parametrize(
    ("done", "verdicts", "blocks", "at_most"),
    [
        (0, [], 30, True),
        (3, [verdict("b", "improves")], 2, False),
        (8, [verdict("b", "improves")], 0, False),
        (6, [verdict("b", more_blocks=4), verdict("c", more_blocks=9)], 8, False),
        (6, [verdict("b", more_blocks=4), verdict("c", more_blocks=None)], 24, True),
        (6, [verdict("b", more_blocks=500, blocks=6)], 24, True),
        (6, [verdict("b", more_blocks=2), verdict("b", more_blocks=20, deciding=False)], 2, False),
        (30, [verdict("b", more_blocks=2)], 0, True),
    ],
)
def test_the_slowest_deciding_verdict_sets_the_end(
    done: int, verdicts: list[Verdict], blocks: int, at_most: bool
) -> None:
    estimate = remaining(done, verdicts, min_blocks=5, max_blocks=30)
    assert (estimate.blocks, estimate.at_most) == (blocks, at_most)


def test_what_is_decided_costs_nothing_more_and_the_rest_until_its_review() -> None:
    verdicts = [verdict("b", "improves"), verdict("c", more_blocks=2), verdict("d", more_blocks=8, blocks=60)]
    estimate = remaining(12, verdicts, min_blocks=5, max_blocks=30, allocation="undecided")
    assert estimate.blocks == 8
    assert estimate.blocks_left == {"b": 0, "c": 3, "d": 8}  # there is a review after 15 blocks, none after 14
    assert estimate.seconds({"a": 1, "b": 100, "c": 10, "d": 1000}) == 8 * 1 + 3 * 10 + 8 * 1000


def play(seed: int, effects: dict[str, float], noise: float, most: int = 300) -> list[tuple[int, int]]:
    """A study with known effects, decided configuration by configuration: after each review that left something open
    how many trials were expected to follow, and how many did.
    """
    random = np.random.default_rng(seed)
    configurations = [Configuration(name=name, levels={"f": name}, baseline=name == "a") for name in effects]
    expected: list[Any]
    held, trials, expected = tuple(effects), [], []
    due = reviews(5)
    review = next(due)
    for block in range(most):
        for position, name in enumerate(random.permutation(held)):
            value = float(np.exp(effects[name] + random.normal(0, noise)))
            slot = Slot(block=block, position=position, configuration=str(name), seed=1)
            trials.append(Trial(slot=slot, status="ok", metrics={"elapsed": value}))
        if block + 1 < review:
            continue
        review = next(due)
        verdicts = judge(configurations, trials, [ELAPSED], smallest_effect=0.02)
        if all(verdict.verdict != "undecided" for verdict in verdicts):
            return [(guess, len(trials) - before) for guess, before in expected]
        held = members(tuple(effects), "a", verdicts)
        left = remaining(block + 1, verdicts, min_blocks=5, max_blocks=most, allocation="undecided")
        expected.append((round(left.seconds(dict.fromkeys(effects, 1.0))), len(trials)))
    return []


def test_what_is_expected_to_be_left_is_about_what_follows() -> None:
    effects = {"a": 0.0, "b": 0.1, "c": 0.035, "d": 0.0}
    estimates = [estimate for seed in range(25) for estimate in play(seed, effects, noise=0.02)[:4]]
    ratios = np.array([guess / actual for guess, actual in estimates])
    assert len(ratios) > 60
    assert 0.6 < np.median(ratios) < 1.6
    assert np.mean((ratios >= 1 / 2) & (ratios <= 2)) > 0.7

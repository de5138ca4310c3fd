from __future__ import annotations

import math

import numpy as np
import pytest

from ajuste_stats.confidence_sequences import mean_interval
from ajuste_stats.precision import MOST_BLOCKS, blocks_needed, pair_variance


@pytest.mark.parametrize(("effect", "spread"), [(0.02, 0.01), (0.05, 0.03), (0.05, 0.10)])
def test_studies_of_such_runs_take_about_as_many_blocks(effect: float, spread: float) -> None:
    needed = blocks_needed(effect, pair_variance(spread), 0.05)
    assert needed is not None
    random, took = np.random.default_rng(1), []
    for _ in range(200):
        runs = math.log1p(spread) * random.standard_normal((2, 4 * needed))
        ratios = runs[1] - runs[0] + math.log1p(effect)
        took.append(next(n for n in range(3, 4 * needed) if mean_interval(ratios[:n], alpha=0.05).low > 0))
    assert 0.6 * needed < np.median(took) < 1.4 * needed


def test_what_takes_too_many_is_not_told() -> None:
    assert blocks_needed(0.001, pair_variance(0.1), 0.05) is None
    almost = blocks_needed(0.01, pair_variance(0.1), 0.05)
    assert almost is not None
    assert almost <= MOST_BLOCKS

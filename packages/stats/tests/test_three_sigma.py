"""The 3-sigma rule beside the verdicts, against numpy and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ajuste_stats.three_sigma import chance


@pytest.mark.parametrize("n", [2, 5, 20])
def test_how_often_the_rule_is_wrong_by_chance(n: int) -> None:
    random = np.random.default_rng(5)
    baseline, other = random.normal(size=(2, 20_000, n))
    apart = np.abs(baseline.mean(axis=1) - other.mean(axis=1))
    wrong = apart > 3 * np.hypot(stats.sem(baseline, axis=1), stats.sem(other, axis=1))
    expected = chance(n)
    assert expected == pytest.approx(2 * stats.t.sf(3, 2 * n - 2))
    assert np.mean(wrong) == pytest.approx(expected, abs=4 * np.sqrt(expected / 20_000))

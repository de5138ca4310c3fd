"""Differences that are no evidence, and how many values evidence would have taken."""

from __future__ import annotations

import numpy as np
import pytest

from ajuste_stats.fixed_samples import unpaired, values_needed


@pytest.mark.parametrize(
    ("effect", "power", "n"),
    [(0.2, 0.8, 394), (0.5, 0.8, 64), (0.8, 0.8, 26), (0.2, 0.9, 527), (0.5, 0.9, 86), (0.8, 0.9, 34)],
)
def test_as_many_values_as_in_the_published_tables(effect: float, power: float, n: int) -> None:
    """Sizes of each of two samples, two-sided at 5 %.

    For 80 %: Cohen 1992, "A power primer", Psychological Bulletin 112, table 2 (393.4 rounded to 393); otherwise
    statsmodels' TTestIndPower.
    """
    assert values_needed(effect, (1.0, 1.0), 0.05, power) == n


def test_pairs_need_as_many_as_one_sample_does() -> None:
    """statsmodels' TTestPower for an effect of 0.5 at 5 % and 90 %: 43.99."""
    assert values_needed(0.5, (1.0,), 0.05, 0.9) == 44


def test_that_many_values_show_the_difference_as_often_as_was_said() -> None:
    """Unequal spreads, by simulation: 90 % of 2,000 comparisons, within four standard errors."""
    n = values_needed(1.0, (1.0, 2.0), 0.05)
    assert n is not None
    source = np.random.default_rng(3)
    first, second = source.normal(0, 1, (2000, n)), source.normal(1, 2, (2000, n))
    seen = np.mean([unpaired(a, b).p_value < 0.05 for a, b in zip(first, second, strict=True)])
    assert 0.873 < seen < 0.927


def test_what_no_number_of_values_shows() -> None:
    assert values_needed(0.0, (1.0, 1.0), 0.05) is None
    assert values_needed(1e-6, (1.0, 1.0), 0.05) is None

"""Moderated variances: against a known mixture."""

from __future__ import annotations

import numpy as np
import pytest

from ajuste_stats.block_tables import moderated


def test_variances_that_differ_by_chance_only_become_one() -> None:
    random = np.random.default_rng(5)
    variances = 4.0 * random.chisquare(4, 60) / 4
    shrunk, freedom = moderated(variances, np.full(60, 4.0))
    assert np.ptp(shrunk) < 0.2 * np.ptp(variances)
    assert shrunk.mean() == pytest.approx(4.0, rel=0.15)
    assert np.all(freedom > 40)


def test_variances_that_truly_differ_stay_apart() -> None:
    random = np.random.default_rng(6)
    truth = np.repeat([1.0, 400.0], 30)
    shrunk, freedom = moderated(truth * random.chisquare(5, 60) / 5, np.full(60, 5.0))
    assert np.median(shrunk[30:]) > 100 * np.median(shrunk[:30])
    assert np.all(freedom < 10)


def test_what_was_measured_once_gets_the_common_variance() -> None:
    shrunk, _ = moderated(np.array([2.0, 2.2, 1.8, 2.1, np.nan]), np.array([4.0, 4.0, 4.0, 4.0, 0.0]))
    assert shrunk[4] == pytest.approx(2.025)

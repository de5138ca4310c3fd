"""The benchmark of tuning, in small: searches with noise report what is true, and every method stays on its surface."""

from __future__ import annotations

import pytest
from benchmarks.tuning import efficiency
from benchmarks.tuning.curse import noisy_search
from benchmarks.tuning.peers import METHODS
from benchmarks.tuning.surfaces import SYNTHETIC


@pytest.mark.slow
def test_the_reported_interval_has_the_true_gain_of_what_was_chosen() -> None:
    for seed in (1, 2):
        results, truth = noisy_search(seed, "random", trials=30)
        (verdict,) = [verdict for verdict in results.verdicts if verdict.deciding]
        assert verdict.low is not None
        assert verdict.high is not None
        assert verdict.low <= truth <= verdict.high


def test_methods_are_compared_by_how_far_they_stay_above_the_true_best() -> None:
    plain = {"ajuste": METHODS["grid"], "random": METHODS["random"]}
    compared = efficiency(SYNTHETIC[0], plain, repeats=2)
    assert all(value >= 0 for values in compared.figures.values() for value in values)
    assert compared.figures["ajuste"][0] == compared.figures["ajuste"][1]

"""Figures that are coarse, and counts that are rare: *equivalent* is not said of what was not seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from ajuste_stats.precision import estimate_interval
from ajuste_stats.rare_counts import rate_ratio
from ajuste_stats.rounding import printed_step, rounding_error
from ajuste_stats.terms import Measure

TIME = Measure(unit="s", direction="lower")


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.3, 0.5, 1.0, 3.0])
def test_the_bound_of_the_rounding_error_holds(spread: float) -> None:
    random = np.random.default_rng(2)
    for centre in np.linspace(10, 11, 21):
        values = np.round(random.normal(centre, spread, 2000))
        assert abs(float(np.mean(values)) - centre) <= rounding_error(values, 1.0) + 4 * max(spread, 0.01) / math.sqrt(
            2000
        )


@pytest.mark.parametrize(
    ("values", "step"),
    [((0.1, 0.1), 0.1), ((0.1, 0.25), 0.01), ((3.0, 7.0), 1.0), ((0.00123, 0.0012), 1e-5), ((0.0, 0.0), 1.0)],
)
def test_the_step_is_that_of_the_last_digit(values: Sequence[float], step: float) -> None:
    assert printed_step(np.array(values)) == pytest.approx(step)


def test_figures_of_a_clock_have_no_step_that_matters() -> None:
    assert printed_step(np.array([1.123456789, 2.5])) <= 1e-8
    assert printed_step(np.array([math.pi, 1e6 * math.e])) <= 1e-2


def test_the_mean_of_one_configuration_is_known_to_its_step() -> None:
    interval = estimate_interval([0.1] * 40, TIME, 0.05)
    assert interval.high >= 0.149


@pytest.mark.parametrize("shape", [None, 0.5])
def test_the_ratio_of_rates_holds_at_all_looks(shape: float | None) -> None:
    """Counts are of Poisson, and of bursts: with rates of a gamma distribution for each trial."""
    random = np.random.default_rng(5)
    wrong = 0
    for _ in range(200):
        rates = np.full((2, 40), 0.5) if shape is None else 0.5 * random.gamma(shape, 1 / shape, (2, 40))
        counts = random.poisson(rates).astype(float)
        bounds = [rate_ratio(counts[0, :n], counts[1, :n], 0.05) for n in range(6, 41, 2)]
        wrong += any(not bound.low <= 1 <= bound.high for bound in bounds)
    assert wrong <= 0.05 * 200

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from ajuste_stats.confidence_sequences import count_bounds, fewest_for, log_evidence, quantile_bounds
from ajuste_stats.effects import effect
from ajuste_stats.pairs import Pairs
from ajuste_stats.terms import Measure

ELAPSED = Measure(unit="s", direction="lower")


@pytest.mark.parametrize(("k", "n", "p"), [(0, 4, 0.5), (19, 20, 0.95), (7, 30, 0.5), (60, 80, 0.99)])
def test_the_evidence_is_the_integral_of_the_likelihood_ratio_over_all_shares(k: int, n: int, p: float) -> None:
    """Integrate by quadrature with the weight (1 − x)^β (1 + x)^α of the Beta mixture, on −1 to 1."""

    def ratio(share: float) -> float:
        return math.exp(stats.binom.logpmf(k, n, share) - stats.binom.logpmf(k, n, p))

    whole, _ = integrate.quad(ratio, 0, 1, weight="alg", wvar=(p - 1, -p), epsabs=0, epsrel=1e-12, limit=500)
    norm, _ = integrate.quad(lambda _: 1.0, 0, 1, weight="alg", wvar=(p - 1, -p), epsabs=0, epsrel=1e-12)
    ours = log_evidence(np.array([float(k)]), np.array([float(n)]), p)[0]
    assert ours == pytest.approx(math.log(whole / norm), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("p", "distribution"), [(0.5, "lognormal"), (0.95, "exponential"), (0.5, "atoms")])
def test_the_bounds_hold_at_every_look_whatever_the_distribution(p: float, distribution: str) -> None:
    random = np.random.default_rng(11)
    looks, studies = 200, 1000
    if distribution == "atoms":
        values, true = random.poisson(3.0, (studies, looks)).astype(float), stats.poisson.ppf(p, 3.0)
    elif distribution == "exponential":
        values, true = random.exponential(1.0, (studies, looks)), stats.expon.ppf(p)
    else:
        values, true = random.lognormal(0.0, 1.0, (studies, looks)), stats.lognorm.ppf(p, 1.0)
    below, upto = np.cumsum(values < true, axis=1), np.cumsum(values <= true, axis=1)
    bounds = np.array([count_bounds(n, p, 0.05) for n in range(1, looks + 1)])
    wrong = ((below > bounds[:, 1]) | (upto < bounds[:, 0])).any(axis=1).mean()
    assert wrong <= 0.05
    if distribution != "atoms":
        assert wrong > 0.005
    low, high = quantile_bounds(values[0, :90], p, 0.05)
    assert (low <= true <= high) == (below[0, 89] <= bounds[89, 1] and upto[0, 89] >= bounds[89, 0])


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=60), st.sampled_from([0.25, 0.5, 0.9]))
def test_the_sample_quantile_lies_between_its_bounds(values: list[int], p: float) -> None:
    table = np.array(values, dtype=float)
    low, high = quantile_bounds(table, p, 0.05)
    assert low <= np.quantile(table, p, method="inverted_cdf") <= high


@pytest.mark.parametrize(("p", "fewest"), [(0.5, 8), (0.95, 77), (0.99, 374)])
def test_the_further_out_the_more_values_are_needed(p: float, fewest: int) -> None:
    assert fewest_for(p, 0.025) == fewest
    values = np.arange(float(fewest))
    assert np.isfinite(quantile_bounds(values, p, 0.025)).all()
    assert not np.isfinite(quantile_bounds(values[:-1], p, 0.025)).all()


def test_an_effect_on_a_quantile_is_the_ratio_of_the_quantiles_and_holds_what_is_true() -> None:
    random = np.random.default_rng(3)
    metric, right, excluded = replace(ELAPSED, quantile=0.5), 0, 0
    for _ in range(100):
        baseline, other = random.lognormal(0, 0.1, 80), 1.2 * random.lognormal(0, 0.1, 80)
        estimated = effect(Pairs(baseline, other), metric, 0.05)
        assert estimated is not None
        assert estimated.estimate == pytest.approx(np.median(other) / np.median(baseline))
        assert estimated.low is not None
        assert estimated.high is not None
        right += estimated.low <= 1.2 <= estimated.high
        excluded += estimated.low > 1
    assert right >= 95
    assert excluded >= 90


def test_an_effect_on_the_tail_that_the_mean_hardly_shows() -> None:
    random = np.random.default_rng(8)
    baseline = random.normal(1, 0.01, 400)
    other = np.where(random.random(400) < 0.1, 1.5, random.normal(0.95, 0.01, 400))
    tail = effect(Pairs(baseline, other), replace(ELAPSED, quantile=0.95), 0.05)
    mean = effect(Pairs(baseline, other), ELAPSED, 0.05)
    assert tail is not None
    assert mean is not None
    assert tail.interval.low > 0
    assert mean.interval.low < 0


def test_too_few_values_give_no_bounds_and_equal_ones_a_step() -> None:
    few = effect(Pairs(np.ones(4), np.ones(4)), replace(ELAPSED, quantile=0.5), 0.05)
    coarse = replace(ELAPSED, resolution=0.1, quantile=0.5)
    many = effect(Pairs(np.ones(60), np.ones(60)), coarse, 0.05)
    assert few is not None
    assert many is not None
    assert (few.low, few.high) == (None, None)
    assert (many.low, many.high) == (pytest.approx(0.95 / 1.05), pytest.approx(1.05 / 0.95))


def test_what_can_be_0_is_compared_by_differences() -> None:
    estimated = effect(
        Pairs(np.zeros(20), np.full(20, 3.0)),
        replace(ELAPSED, resolution=1.0, quantile=0.5),
        0.05,
    )
    assert estimated is not None
    assert (estimated.scale, estimated.estimate, estimated.low, estimated.high, estimated.fell_back) == (
        "difference",
        3,
        2,
        4,
        True,
    )


@pytest.mark.parametrize(("n", "p", "alpha"), [(0, 0.5, 0.05), (3, 0.0, 0.05), (3, 0.5, 1.0)])
def test_impossible_requests_are_refused(n: int, p: float, alpha: float) -> None:
    with pytest.raises(ValueError, match="expected"):
        count_bounds(n, p, alpha)

"""The distributions beside scipy's."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special, stats

from ajuste.model import distributions as ours

FREEDOM = st.floats(0.5, 5_000)
PROBABILITY = st.floats(1e-12, 1 - 1e-9)


def same(own: float, theirs: float, relative: float = 1e-9) -> bool:
    return math.isclose(own, theirs, rel_tol=relative, abs_tol=1e-13)


@given(FREEDOM, st.floats(-60, 60))
def test_student_cdf(freedom: float, x: float) -> None:
    assert same(ours.student_cdf(freedom, x), special.stdtr(freedom, x))


@given(FREEDOM, st.floats(-1e-5, 1e-5))
def test_student_cdf_in_the_middle(freedom: float, x: float) -> None:
    # SciPy's own is off by up to 1e-10 here, where the density is all but constant.
    assert same(ours.student_cdf(freedom, x), 0.5 + x * stats.t.pdf(0, freedom), 1e-13)


@given(FREEDOM, st.floats(-1e-5, 1e-5))
@example(1396.0, 0.000276362374774)
@example(1.0, 0.0)
def test_student_quantile_in_the_middle(freedom: float, above: float) -> None:
    probability = 0.5 + above
    expected = (probability - 0.5) / stats.t.pdf(0, freedom)
    assert math.isclose(ours.student_quantile(freedom, probability), expected, rel_tol=1e-6)


@given(FREEDOM, PROBABILITY)
def test_student_quantile(freedom: float, probability: float) -> None:
    assert same(ours.student_quantile(freedom, probability), stats.t.ppf(probability, freedom), 1e-7)


@given(st.floats(1, 3_000), st.floats(-8, 30), st.floats(-40, 40))
def test_noncentral_student_cdf(freedom: float, shift: float, x: float) -> None:
    theirs = float(stats.nct.cdf(x, freedom, shift))
    assert math.isnan(theirs) or ours.noncentral_student_cdf(freedom, shift, x) == pytest.approx(theirs, abs=1e-9)


@given(st.integers(1, 60), FREEDOM, st.floats(0, 50))
def test_f_tail(between: int, within: float, x: float) -> None:
    assert same(ours.f_tail(between, within, x), special.fdtrc(between, within, x))


@given(st.integers(1, 60), st.floats(1, 5_000), PROBABILITY)
def test_f_quantile(between: int, within: float, probability: float) -> None:
    assert same(ours.f_quantile(between, within, probability), special.fdtri(between, within, probability), 1e-6)


@given(FREEDOM, st.floats(0, 10_000))
def test_chi_squared_cdf(freedom: float, x: float) -> None:
    assert same(ours.chi_squared_cdf(freedom, x), special.chdtr(freedom, x))


@given(FREEDOM, st.floats(1e-9, 1 - 1e-9))
def test_chi_squared_quantile(freedom: float, probability: float) -> None:
    assert same(ours.chi_squared_quantile(freedom, probability), stats.chi2.ppf(probability, freedom), 1e-8)


@given(st.floats(-37, 8))
def test_normal_cdf(x: float) -> None:
    assert math.isclose(ours.normal_cdf(x), special.ndtr(x), rel_tol=1e-12)


@given(PROBABILITY)
def test_normal_quantile(probability: float) -> None:
    assert same(ours.normal_quantile(probability), special.ndtri(probability))


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_quantiles_of_certain_events_are_infinite(probability: float) -> None:
    assert ours.normal_quantile(probability) == special.ndtri(probability)
    assert ours.student_quantile(5, probability) == stats.t.ppf(probability, 5)


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_log_beta(a: float, b: float) -> None:
    assert ours.log_beta(a, b) == pytest.approx(special.betaln(a, b), rel=1e-8, abs=1e-8)


@given(st.floats(1e-3, 1e8))
def test_derivatives_of_log_gamma(x: float) -> None:
    assert ours.digamma(x) == pytest.approx(special.digamma(x), rel=1e-12, abs=1e-13)
    assert math.isclose(ours.trigamma(x), special.polygamma(1, x), rel_tol=1e-12)
    assert math.isclose(ours.tetragamma(x), special.polygamma(2, x), rel_tol=1e-12)

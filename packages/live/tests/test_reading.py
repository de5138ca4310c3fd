"""Figures from what sources show: rates, means and quantiles, and counters that were reset."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ajuste_live.reading import (
    CounterResetError,
    Reading,
    latest,
    level,
    mean_of_events,
    mean_of_values,
    quantile_of_buckets,
    quantile_of_values,
    rate,
)


def readings(*series: tuple[float, ...], step_s: float = 2.0) -> list[Reading]:
    return [Reading(place * step_s, values) for place, values in enumerate(series)]


def test_a_counter_becomes_its_rate_over_the_whole_time() -> None:
    assert rate(readings((10.0,), (30.0,), (40.0,))) == pytest.approx(30 / 4)
    assert rate(readings((10.0,))) is None


def test_what_goes_up_and_down_is_averaged() -> None:
    assert level(readings((1.0,), (5.0,), (math.nan,))) == 3
    assert level([]) is None


def test_the_newest_figure_of_a_level_is_its_last_and_of_a_counter_the_last_growth() -> None:
    series = readings((1.0,), (1.0,), (9.0,))
    assert latest(level, series) == 9
    assert latest(rate, series) == 4
    assert latest(rate, series[:1]) is None


def test_the_mean_of_events_is_of_those_between() -> None:
    assert mean_of_events(readings((100.0, 10.0), (103.0, 11.0), (106.0, 13.0))) == pytest.approx(2)
    assert mean_of_events(readings((100.0, 10.0), (100.0, 10.0))) is None


@pytest.mark.parametrize("fold", [rate, mean_of_events, quantile_of_buckets(0.5, (1.0, math.inf))])
def test_a_reset_is_noticed_even_if_the_counter_has_passed_its_old_value(fold) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CounterResetError):
        fold(readings((50.0, 50.0), (1.0, 1.0), (90.0, 90.0)))


def test_quantiles_of_a_histogram_are_near_those_of_its_events() -> None:
    events = np.random.default_rng(1).gamma(3, 0.01, 20_000)
    bounds = (*np.arange(0.002, 0.2, 0.002), math.inf)
    before = tuple(float(np.sum(events[:5000] <= bound)) for bound in bounds)
    after = tuple(float(np.sum(events <= bound)) for bound in bounds)
    for share in (0.5, 0.9, 0.99):
        quantile = quantile_of_buckets(share, bounds)(readings(before, after))
        assert quantile == pytest.approx(np.quantile(events[5000:], share), rel=0.03)


def test_events_of_a_log_are_those_after_the_first_look() -> None:
    series = readings((1000.0,), (1.0, 2.0), (), (3.0,))
    assert mean_of_values(series) == 2
    assert quantile_of_values(0.5)(series) == np.quantile([1, 2, 3], 0.5)
    assert mean_of_values(readings((5.0,), ())) is None

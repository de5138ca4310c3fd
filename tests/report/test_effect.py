"""Estimates and intervals as people read them."""

from __future__ import annotations

import pytest

from ajuste.model.verdict import Verdict
from ajuste.report.verdicts import effect_style


def verdict(estimate: float | None, low: float | None, high: float | None, scale: str = "ratio") -> Verdict:
    return Verdict(
        configuration="b",
        metric="m",
        unit="s",
        direction="lower",
        scale=scale,  # type: ignore[arg-type]
        verdict="undecided",
        estimate=estimate,
        low=low,
        high=high,
        level=0.95,
        blocks=5,
        reason="",
    )


@pytest.mark.parametrize(
    ("judged", "estimate", "interval"),
    [
        (verdict(0.5, 0.4, 0.6), "−50.0 %", "−60.0 … −40.0 %"),
        (verdict(1.001, 1.0005, 1.0015), "+0.10 %", "+0.05 … +0.15 %"),
        (verdict(0.0074, 0.006, 0.0091), "×0.00740", "×0.00600 … ×0.00910"),
        (verdict(12.3, 10.0, None), "×12.3", "at least ×10.0"),
        (verdict(0.9, None, 1.2), "−10.0 %", "at most +20.0 %"),
        (verdict(1.0, None, None), "0.0 %", "unknown until more blocks"),
        (verdict(99.7, 1e-20, 2.8e23), "×99.7", "unknown until more blocks"),
        (verdict(1.2, 0.05, 30.0), "+20.0 %", "unknown until more blocks"),
        (verdict(1.2, 0.5, 3.0), "+20.0 %", "−50.0 … +200.0 %"),
        (verdict(None, None, None), "–", "unknown until more blocks"),
        (verdict(float("nan"), 0.9, float("inf")), "–", "at least −10.0 %"),
        (verdict(-0.0021, -0.0031, -0.0011, "difference"), "−2.1 ms", "−3.1 … −1.1 ms"),
    ],
)
def test_ratios_are_percentages_or_factors_and_differences_have_units(
    judged: Verdict, estimate: str, interval: str
) -> None:
    style = effect_style([judged], judged.unit)[judged.scale]
    assert (style.estimate(judged), style.interval(judged)) == (estimate, interval)


def test_all_effects_of_a_metric_are_said_alike() -> None:
    small, large = verdict(0.9, 0.8, 1.0), verdict(0.004, 0.002, 0.008)
    style = effect_style([small, large], "s")["ratio"]
    assert style.estimate(small) == "×0.900"


def test_a_metric_that_fell_back_to_differences_has_both_styles() -> None:
    ratio, difference = verdict(0.9, 0.8, 1.0), verdict(2.0, 1.0, 3.0, "difference")
    styles = effect_style([ratio, difference], "s")
    assert styles["ratio"].estimate(ratio) == "−10.0 %"
    assert styles["difference"].estimate(difference).endswith(" s")

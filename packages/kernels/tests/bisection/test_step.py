"""Verdicts on the difference that a bisection seeks."""

from __future__ import annotations

import pytest

from ajuste.model.verdict import Verdict
from ajuste_kernels.bisection.session import is_difference, outcome_of
from ajuste_stats.bisection import Outcome
from ajuste_stats.terms import Scale, Word


def verdict(
    estimate: float | None, low: float | None, high: float | None, scale: Scale = "ratio", word: Word = "worsens"
) -> Verdict:
    return Verdict(
        metric="elapsed", unit="s", direction="lower", scale=scale, verdict=word, estimate=estimate, low=low, high=high,
        level=0.95, blocks=5, reason="", configuration="b",
    )  # fmt: skip


FOURFOLD = verdict(4.0, 3.8, 4.2)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (3.9, 4.1, "there"),
        (2.1, 9.0, "there"),
        (0.98, 1.02, "absent"),
        (1.2, 1.9, "absent"),
        (0.2, 0.3, "absent"),
        (1.5, 2.5, "undecided"),
        (None, 3.0, "undecided"),
        (2.5, None, "there"),
    ],
)
def test_it_is_there_beyond_half_of_the_difference_and_absent_below(
    low: float | None, high: float | None, outcome: Outcome
) -> None:
    assert outcome_of(FOURFOLD, verdict(2.0, low, high)) == outcome


def test_a_fall_is_sought_downwards() -> None:
    quarter = verdict(0.25, 0.24, 0.26, word="improves")
    assert outcome_of(quarter, verdict(0.3, 0.28, 0.32)) == "there"
    assert outcome_of(quarter, verdict(0.9, 0.8, 0.99)) == "absent"
    assert outcome_of(quarter, verdict(4.0, 3.8, 4.2)) == "absent"


def test_differences_are_halved_as_they_are() -> None:
    ends = verdict(100.0, 90.0, 110.0, "difference")
    assert outcome_of(ends, verdict(60.0, 51.0, 70.0, "difference")) == "there"
    assert outcome_of(ends, verdict(40.0, 30.0, 49.0, "difference")) == "absent"
    assert outcome_of(ends, verdict(40.0, 1.2, 1.4, "ratio")) == "undecided"


def test_a_candidate_without_figures_tells_nothing() -> None:
    assert outcome_of(FOURFOLD, verdict(None, None, None, word="undecided")) == "undecided"


@pytest.mark.parametrize(
    ("word", "is_one"), [("worsens", True), ("differs", True), ("equivalent", False), ("undecided", False)]
)
def test_only_a_certain_difference_of_the_ends_can_be_sought(word: Word, is_one: bool) -> None:
    assert is_difference(verdict(1.4, 1.3, 1.5, word=word)) == is_one

"""Levels of a range as the kernel made them."""

from __future__ import annotations

from typing import Any

from ajuste.analysis.summary import as_run
from ajuste.model.results import Measured
from ajuste.model.trial import Configuration, Factor
from ajuste.model.tunable import Span

LEVELS = ("4", "5", "8", "10")


def run(read: dict[str, str], *, ranged: bool = True, baseline: str = "4") -> Any:
    span = Span(low=4, high=10, points=4) if ranged else None
    factor = Factor(name="read_ahead_kb", levels=LEVELS, baseline=baseline, span=span)
    made = [Configuration(name=f"k={v}", levels={"read_ahead_kb": v}, baseline=v == baseline) for v in LEVELS]
    measured = [
        Measured(name=c.name, levels=c.levels, baseline=c.baseline, metrics={}, read_back={"read_ahead_kb": read[v]})
        for c, v in zip(made, LEVELS, strict=True)
    ]
    return as_run([factor], made, measured)


def test_a_level_that_the_kernel_rounded_is_what_it_became() -> None:
    actual = run({"4": "4", "5": "6", "8": "8", "10": "10"})
    assert actual.factors[0].levels == ("4", "6", "8", "10")
    assert [c.levels["read_ahead_kb"] for c in actual.configurations] == ["4", "6", "8", "10"]
    assert [c.name for c in actual.configurations] == ["k=4", "k=5", "k=8", "k=10"]
    assert "5 became 6" in actual.notes[0]


def test_of_those_that_became_the_same_one_stands_for_all() -> None:
    actual = run({"4": "4", "5": "4", "8": "8", "10": "8"})
    assert actual.factors[0].levels == ("4", "8")
    assert [c.name for c in actual.configurations] == ["k=4", "k=8"]
    assert any("k=5 became the same as k=4" in note for note in actual.notes)


def test_the_baseline_stands_for_what_became_the_same() -> None:
    actual = run({"4": "4", "5": "4", "8": "8", "10": "8"}, baseline="5")
    assert next(c for c in actual.configurations if c.baseline).name == "k=5"
    assert actual.factors[0].baseline == "4"


def test_what_trials_read_back_differently_and_lists_of_levels_stay_as_asked() -> None:
    assert run({"4": "4", "5": "4, 5", "8": "8", "10": "10"}).factors[0].levels == LEVELS
    assert run({"4": "4", "5": "4", "8": "8", "10": "8"}, ranged=False).factors[0].levels == LEVELS

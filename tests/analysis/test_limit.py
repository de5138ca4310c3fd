"""Limits: proved to be exceeded only where the whole interval lies beyond."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.analysis.verdict import judge
from ajuste.design.stopping import StoppingLimits, stop
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Slot, Trial
from ajuste.model.verdict import Verdict
from ajuste.report.verdicts import counted, verdict_text
from ajuste_stats.confidence_sequences import Interval
from ajuste_stats.decision import limit_word
from ajuste_stats.effects import Effect
from ajuste_stats.terms import Direction

TIME = Metric(name="time", title="Time", unit="s", direction="lower", resolution=1e-9)
RATE = TIME.model_copy(update={"direction": "higher"})
COUNT = TIME.model_copy(update={"scale": "difference", "resolution": 1.0})


def ratio(low: float, high: float) -> Effect:
    """An effect whose interval is from ``low`` to ``high``."""
    ends = math.log(low), math.log(high)
    return Effect("ratio", Interval(9, sum(ends) / 2, 1e-6, (ends[1] - ends[0]) / 2), 10.0, 0.0)


def difference(low: float, high: float, mean: float) -> Effect:
    return Effect("difference", Interval(9, (low + high) / 2, 1e-6, (high - low) / 2), mean, 1.0)


@pytest.mark.parametrize(
    ("metric", "low", "high", "word"),
    [
        (TIME, 1.011, 1.03, "beyond"),
        (TIME, 1.009, 1.03, "undecided"),  # it excludes zero, and that is not enough
        (TIME, 1.002, 1.009, "within"),  # worse for certain, and by less than the limit
        (TIME, 0.999, 1.001, "within"),
        (TIME, 0.5, 1.009, "within"),  # wide, and yet it cannot be a regression
        (TIME, 0.5, 0.6, "within"),  # better
        (TIME, 0.99, 1.011, "undecided"),
        (RATE, 0.95, 0.989, "beyond"),
        (RATE, 0.95, 0.991, "undecided"),
        (RATE, 0.9901, 2.0, "within"),  # a fall by less than 1 % is none by more, whatever 1/1.01 is
        (RATE, 1.5, 2.0, "within"),
    ],
)
def test_only_the_whole_interval_decides(metric: Metric, low: float, high: float, word: str) -> None:
    assert limit_word(ratio(low, high), metric, 0.01) == word


@pytest.mark.parametrize(
    ("low", "high", "mean", "word"),
    [
        (1.1, 3.0, 100.0, "beyond"),
        (0.9, 3.0, 100.0, "undecided"),
        (-5.0, 0.9, 100.0, "within"),
        (-5.0, 0.9, -100.0, "within"),
        (0.0, 0.0, 0.0, "within"),
        (1.5, 3.0, 0.0, "beyond"),  # beside a baseline of 0 the limit is one step of the figure
    ],
)
def test_differences_are_shares_of_the_baseline(low: float, high: float, mean: float, word: str) -> None:
    assert limit_word(difference(low, high, mean), COUNT, 0.01) == word


@given(st.floats(0.3, 3), st.floats(0, 1), st.floats(0.001, 0.9))
def test_lower_and_higher_are_alike_where_they_are_turned(middle: float, width: float, limit: float) -> None:
    effect = difference(middle - width, middle + width, 1.0)
    turned = difference(-middle - width, -middle + width, 1.0)
    higher = COUNT.model_copy(update={"direction": "higher"})
    assert limit_word(effect, COUNT, limit) == limit_word(turned, higher, limit)


@given(st.floats(-2, 2), st.floats(0, 2), st.floats(0, 2), st.floats(0.001, 0.9))
def test_a_narrower_interval_never_takes_back_what_was_decided(
    middle: float, width: float, more: float, limit: float
) -> None:
    wide = limit_word(difference(middle - width - more, middle + width + more, 1.0), COUNT, limit)
    narrow = limit_word(difference(middle - width, middle + width, 1.0), COUNT, limit)
    assert wide in ("undecided", narrow)


def test_nothing_is_decided_without_an_interval() -> None:
    assert limit_word(Effect("ratio", Interval(1, 0.5, 0.0, math.inf), 1.0, 0.0), TIME, 0.01) == "undecided"


# A study that decides whether a limit is exceeded.


def trials(ratios: list[float]) -> list[Trial]:
    """Blocks in which the head takes so many times as long."""
    return [
        Trial(
            slot=Slot(block=block, position=side, configuration=name, seed=1),
            status="ok",
            reason="",
            started="2026-01-01T00:00:00+00:00",
            host_seconds=1.0,
            metrics={"time": 10.0 * (times if name == "head" else 1)},
        )
        for block, times in enumerate(ratios)
        for side, name in enumerate(("base", "head") if block % 2 else ("head", "base"))
    ]


def judged(ratios: list[float], *, direction: Direction = "lower", limited: bool = True, **options: Any) -> Verdict:
    made = [Configuration(name=name, levels={"command": name}, baseline=name == "base") for name in ("base", "head")]
    metric = TIME.model_copy(update={"direction": direction})
    (verdict,) = judge(made, trials(ratios), [metric], smallest_effect=0.01, limited=limited, **options)
    return verdict


def test_a_gate_goes_on_where_a_comparison_would_stop() -> None:
    """Effect from +0.3 % to +2.4 %: certainly worse, and not certainly by more than 1 %."""
    shaky = [1.018, 1.009, 1.018, 1.009, 1.018, 1.009, 1.018, 1.009]
    limits = StoppingLimits(min_blocks=3, max_blocks=100, max_minutes=1)
    gate, comparison = judged(shaky), judged(shaky, limited=False)
    assert gate.low is not None
    assert gate.high is not None
    assert 1 < gate.low < 1.01 < gate.high
    assert (gate.verdict, gate.against_limit, gate.is_open) == ("worsens", "undecided", True)
    assert gate.more_blocks is not None
    assert stop([gate], 8, 0.1, limits) is None
    assert (comparison.verdict, comparison.against_limit, comparison.is_open) == ("worsens", None, False)
    assert stop([comparison], 8, 0.1, limits) is not None


def test_a_gate_stops_where_a_comparison_would_go_on() -> None:
    """Effect from −2.2 % to +0.995 %: a comparison does not know, and nothing of that is a regression."""
    shaky = [0.985, 1.003] * 5
    gate = judged(shaky)
    assert (gate.verdict, judged(shaky, limited=False).is_open) == ("undecided", True)
    limits = StoppingLimits(min_blocks=3, max_blocks=100, max_minutes=1)
    assert (gate.against_limit, gate.is_open) == ("within", False)
    assert gate.within_limit(0.01) == verdict_text(gate, 0.01) == "at most 1 % worse"
    assert judged(shaky, limited=False).within_limit(0.01) == ""
    (count,) = counted([gate])
    assert count.text == "within the limit"
    few = gate.model_copy(update={"few_trials": True})
    assert verdict_text(few, 0.01) == "at most 1 % worse", "that seeds are too few for equivalent was not asked"
    assert stop([gate], 10, 0.1, limits) is not None


def test_verdicts_of_other_studies_say_nothing_of_it() -> None:
    assert "against_limit" not in judged([1.5] * 6, limited=False).model_dump()
    assert judged([1.5] * 6).model_dump()["against_limit"] == "beyond"
    assert judged([1.5] * 6, direction="higher").against_limit == "within"

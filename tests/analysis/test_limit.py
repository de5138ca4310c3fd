"""Limits: proved to be exceeded only where the whole interval lies beyond."""

from __future__ import annotations

from typing import Any

from ajuste.analysis.verdict import judge
from ajuste.design.stopping import StoppingLimits, stop
from ajuste.model.metric import Metric
from ajuste.model.trial import Configuration, Slot, Trial
from ajuste.model.verdict import Verdict
from ajuste.report.verdicts import counted, verdict_text
from ajuste_stats.terms import Direction

TIME = Metric(name="time", title="Time", unit="s", direction="lower", resolution=1e-9)


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

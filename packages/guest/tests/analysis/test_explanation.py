"""The sentences say what the recordings show: no more, and the greatest change first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ajuste.model.explanation import Recorded
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Results, Summary
from ajuste.model.scheduling import Behaviour, Preemption, Recording, Spread, Switches
from ajuste.model.trial import Factor, Slot, Trial
from ajuste.model.verdict import Verdict
from ajuste_guest.analysis.explanation import (
    deciding_configuration,
    evidence,
    explanation,
    explanations,
    typical_block,
)

MS = 1_000_000


def spread(count: int = 0, mean_ns: int = 0, p95_ns: int = 0) -> Spread:
    return Spread(
        count=count, total_ns=count * mean_ns, p50_ns=mean_ns, p95_ns=p95_ns, p99_ns=p95_ns, max_ns=p95_ns, histogram=()
    )


def switches(**counts: int) -> Switches:
    return Switches(**dict.fromkeys(Switches.model_fields, 0) | counts)


def behaviour(**figures: Any) -> Behaviour:
    idle = {"tasks": 2, "wakeups": 0, "migrations": 0, "run_ns": 0, "wait_ns": 0}
    return Behaviour(**{"switches": switches(), "latency": spread(), "runs": spread()} | idle | figures)


def recorded(name: str, *, lost: int = 0, preemptions: tuple[Preemption, ...] = (), **workload: Any) -> Recorded:
    recording = Recording(
        span_ns=2000 * MS,
        covered_ns=(1000 if lost else 2000) * MS,
        events=10,
        lost=lost,
        buffer_bytes=1 << 16,
        cpus=1,
        idle_ns=0,
        workload=behaviour(**workload),
        background=behaviour(),
        queue=(),
        shares=(),
        preemptions=preemptions,
    )
    return Recorded(configuration=name, block=0, seed=7, kernel="5.10", wall_ns=2000 * MS, recording=recording)


BASELINE = recorded(
    "m=1",
    switches=switches(by_wakeup=220_000, by_turn=510, slept=8000),
    runs=spread(228_510, 9_000, 20_000),
    latency=spread(200_000, 50_000, 100_000),
    preemptions=(
        Preemption(preempted="hackbench", by="hackbench", part="workload", count=219_000),
        Preemption(preempted="hackbench", by="kworker", part="other", count=1_510),
    ),
)
OWN = recorded(
    "m=16",
    switches=switches(by_wakeup=59, slept=3000),
    runs=spread(3_059, 780_000, 900_000),
    latency=spread(3_000, 900_000, 1_900_000),
)


def explanation_text(recording: Recorded, baseline: Recorded) -> str:
    return " ".join(explanation(recording, baseline).sentences)


def test_what_changed_is_said_with_its_cause_and_its_figures() -> None:
    text = explanation_text(OWN, BASELINE)
    assert "Under m=16, " in text
    assert "75 times less often (3,059 instead of 228,510 switches, 98 % of the difference comes from wake-up" in text
    assert "a run lasts 780 µs instead of 9 µs on average" in text.lower()
    assert "waits up to 1.9 ms instead of 100 µs (95th percentile)" in text
    assert "99 % of the 220,510 preemptions under the baseline were by another hackbench task." in text


def test_the_greatest_change_comes_first() -> None:
    """Runs are 87 times as long, switches 75 times fewer, waits 19 times longer."""
    text = explanation_text(OWN, BASELINE).lower()
    places = [text.index(words) for words in ("a run lasts", "leaves the cpu", "a woken task")]
    assert places == sorted(places)


def test_the_other_way_round_it_is_more_often() -> None:
    text = explanation_text(BASELINE, OWN)
    assert "75 times more often (228,510 instead of 3,059 switches, 98 % of the difference comes from wake-up" in text
    assert "of the 220,510 preemptions under this configuration were" in text


def test_a_difference_of_two_causes_names_both() -> None:
    recording = recorded("a", switches=switches(by_wakeup=400, slept=400))
    other = recorded("b", switches=switches(by_wakeup=100, slept=200))
    assert "60 % of the difference comes from wake-up preemptions and 40 % from waits" in explanation_text(
        recording, other
    )


@pytest.mark.parametrize(
    ("last", "words"), [(10, "90 % of the 100 preemptions"), (9, "At least 90 % of the 100 preemptions")]
)
def test_who_preempts_is_told_by_whose_it_is(last: int, words: str) -> None:
    """Tasks of the background load count as one, whatever they are called; of what is not named the least is said."""
    by = (
        Preemption(preempted="job", by="spin", part="background", count=60),
        Preemption(preempted="other", by="stream", part="background", count=30),
        Preemption(preempted="job", by="kworker", part="other", count=last),
    )
    recording = recorded("a", switches=switches(by_turn=100), preemptions=by)
    said_of_it = explanation_text(recording, recorded("b"))
    assert f" {words} under this configuration were by the background load." in said_of_it


@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(1, 10**9))
def test_the_same_twice_is_no_difference(preempted: int, slept: int, run_ns: int) -> None:
    recording = recorded("a", switches=switches(by_turn=preempted, slept=slept), runs=spread(1 + slept, run_ns, run_ns))
    (only,) = explanation(recording, recording.model_copy(update={"configuration": "b"})).sentences
    assert "no figure of the workload's scheduling differs by 10 % or more" in only


@given(st.integers(0, 10**6), st.integers(0, 10**6))
@example(270, 297)
def test_switches_are_told_just_where_they_differ_by_so_much(now: int, before: int) -> None:
    text = explanation_text(recorded("a", switches=switches(slept=now)), recorded("b", switches=switches(slept=before)))
    differs = abs(now - before) >= 5 and max(now, before) >= 1.1 * min(now, before)
    assert ("leaves the CPU" in text) == differs
    if differs:
        assert f"({now if now < 1000 else f'{now:,}'} instead of" in text
        assert ("less often" in text) == (now < before)


def test_a_recording_that_is_not_complete_is_compared_by_the_second() -> None:
    """100 switches in the first second are as many as 200 in two."""
    cut = recorded("a", lost=50, switches=switches(slept=100))
    explained = explanation(cut, recorded("b", switches=switches(slept=200)))
    assert "no figure" in explained.sentences[0]
    assert any("no room for 50 later events" in note for note in explained.notes)
    assert "300 instead of 100 switches per second" in explanation_text(
        recorded("a", lost=50, switches=switches(slept=300)), recorded("b", switches=switches(slept=200))
    )


def test_where_nothing_was_recorded_it_says_why() -> None:
    refused = Recorded(configuration="a", block=0, seed=7, problem="Permission denied")
    explained = explanation(refused, BASELINE)
    assert explained.sentences == ()
    assert explained.notes == ("a could not be recorded: Permission denied",)
    both = explanation(refused, refused.model_copy(update={"configuration": "b"}))
    assert both.notes == ("neither trial could be recorded: Permission denied",)


def test_what_recording_costs_is_told() -> None:
    notes = " ".join(explanation(OWN, BASELINE, {"m=1": 1.6e9, "m=16": 2e9}).notes)
    assert "+25 % (m=1) and 0 % (m=16)" in notes


def results(*verdicts: tuple[str, str, float]) -> Results:
    summary = Summary(n=1, mean=2.0, median=2.0, sd=None, sem=None, minimum=2.0, maximum=2.0)
    return Results.model_validate(
        {
            **dict.fromkeys(("study", "title", "question", "answer", "run", "digest", "stopped_because"), ""),
            **{"seed": 1, "clock": "virtual", "stopped": "decided", "level": 0.95, "smallest_effect": 0.05},
            **{"correction": "", "blocks": 3, "metrics": (), "trials": (), "verdicts": [verdict(*v) for v in verdicts]},
            "factors": (Factor(name="m", levels=("1", "16"), baseline="1"),),
            "configurations": [
                Measured(name=name, levels={}, baseline=name == "m=1", metrics={"elapsed": summary})
                for name in ("m=1", "m=16", "m=30")
            ],
        }
    )


def verdict(configuration: str, word: str, estimate: float) -> Verdict:
    return Verdict.model_validate(
        {
            **{"configuration": configuration, "metric": "time", "unit": "s", "direction": "lower", "scale": "ratio"},
            **{"verdict": word, "estimate": estimate, "low": None, "high": None, "level": 0.95, "blocks": 3},
            "reason": "",
        }
    )


@pytest.mark.parametrize(
    ("verdicts", "chosen"),
    [
        ((("m=16", "improves", 0.7), ("m=30", "improves", 0.9)), "m=16"),
        ((("m=16", "improves", 0.9), ("m=30", "worsens", 3.0)), "m=16"),
        ((("m=16", "equivalent", 0.99), ("m=30", "worsens", 1.2)), "m=30"),
        ((), None),
    ],
)
def test_the_best_is_explained_else_what_differs_most(
    verdicts: tuple[tuple[str, str, float], ...], chosen: str | None
) -> None:
    assert deciding_configuration(results(*verdicts)) == chosen


def test_every_configuration_that_was_recorded_is_explained() -> None:
    explained = explanations(results(), {"m=1": BASELINE, "m=16": OWN})
    assert [comparison.configuration for comparison in explained] == ["m=16"]
    assert explained[0].sentences == explanation(OWN, BASELINE).sentences


def test_a_recording_of_another_block_than_the_baselines_is_not_compared() -> None:
    assert explanations(results(), {"m=1": BASELINE, "m=16": OWN.model_copy(update={"block": 3})}) == ()


def trials(*blocks: tuple[Mapping[str, float], Mapping[str, float]]) -> list[Trial]:
    """Return the trials of m=1 and m=16 in each block, with these metrics."""
    return [
        Trial(
            slot=Slot(block=number, position=position, configuration=name, seed=number, warm_up=False),
            attempt=0,
            status="ok",
            metrics=dict(metrics),
        )
        for number, both in enumerate(blocks)
        for position, (name, metrics) in enumerate(zip(("m=1", "m=16"), both, strict=True))
    ]


TIME = Metric(name="time", title="Time", unit="s", direction="lower")


@pytest.mark.parametrize(
    ("scale", "estimate", "expected"), [("ratio", 0.917, 2), ("ratio", 1.5, 0), ("difference", -1.0, 1)]
)
def test_the_block_nearest_to_the_estimated_effect_is_explained(scale: str, estimate: float, expected: int) -> None:
    pairs = [(10.0, 9.85), (10.0, 9.0), (10.0, 9.17), (10.0, 7.0)]
    estimated = verdict("m=16", "improves", estimate).model_copy(update={"scale": scale})
    run = results().model_copy(update={"verdicts": (estimated,), "metrics": (TIME,)})
    measured = trials(*(({"time": before}, {"time": now}) for before, now in pairs))
    assert typical_block(run, measured, "m=16") == expected
    assert typical_block(run, measured, "m=30") is None
    assert typical_block(run, [], "m=16") is None


def test_a_mechanism_that_the_runs_trials_do_not_bear_out_is_not_said() -> None:
    """Two trials have 1,226 migrations instead of 672; over all blocks there are 720 instead of 732."""
    other, baseline = recorded("m=16", migrations=1226, wakeups=50), recorded("m=1", migrations=672, wakeups=100)
    counts = [(700, 1226), (732, 720), (732, 720), (740, 690), (730, 720)]
    measured = trials(*(({"cpu-migrations": before}, {"cpu-migrations": now}) for before, now in counts))
    assert "1,226 migrations" in " ".join(explanation(other, baseline).sentences)
    (explained,) = explanations(results(), {"m=16": other, "m=1": baseline}, measured)
    assert "migrations" not in " ".join(explained.sentences)
    assert "50 wake-ups instead of 100" in " ".join(explained.sentences)
    assert any("cpu-migrations" in note for note in explained.notes)
    doubled = trials(*(({"cpu-migrations": before}, {"cpu-migrations": 2 * before}) for before, _ in counts))
    assert "1,226 migrations" in " ".join(
        explanations(results(), {"m=16": other, "m=1": baseline}, doubled)[0].sentences
    )


@pytest.mark.parametrize("word", ["undecided", "equivalent", "improves"])
def test_where_the_verdict_proves_no_effect_two_trials_explain_none(word: str) -> None:
    run = results(("m=16", word, 0.98))
    (first, *_) = explanation(OWN, BASELINE, proof=evidence(run, [], "m=16")).sentences
    assert first.startswith(f"The verdict on the time is *{word}*") == (word != "improves")


@pytest.mark.parametrize(
    ("name", "least", "words"),
    [("p99_ns", 100, "89 µs (99th percentile)"), ("p50_ns", 20, "89 µs (median)"), ("max_ns", 1, "longest wait")],
)
def test_every_figure_of_a_spread_counts(name: str, least: int, words: str) -> None:
    def waits(value: int) -> Recorded:
        return recorded("a", latency=spread(least, 8_000, 8_000).model_copy(update={name: value}))

    assert words in explanation_text(waits(16_000), waits(89_000))
    assert "no figure" in explanation_text(waits(16_000), waits(16_001))


def test_as_many_switches_for_another_cause_are_told() -> None:
    text = explanation_text(
        recorded("a", switches=switches(by_wakeup=89, slept=11)), recorded("b", switches=switches(by_turn=89, slept=11))
    )
    assert "no expired time slices instead of 89" in text or "0 expired time slices instead of 89" in text
    assert "89 wake-up preemptions instead of 0" in text

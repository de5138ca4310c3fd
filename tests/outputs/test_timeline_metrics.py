"""Metrics from readings, against what they must be by arithmetic."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ajuste.model.event import Event, Exited, Sample, Sampled, Started
from ajuste.outputs.base import ParseError
from ajuste.outputs.timeline_metrics import MeasuredTimeline, Timeline, measure, measure_all, sampling

START_NS = 7_000_000_000
"""The machine has been up for a while when the workload starts."""

Readings = list[tuple[float, int]]


def second(at_s: float) -> int:
    return START_NS + round(at_s * 1e9)


def workload_events(readings: Readings, end_s: float = 1.0, **end: Any) -> list[Event]:
    """The events of a workload of ``end_s`` seconds, with these readings of vmstat's nr_written."""
    rest = ("voluntary_switches", "involuntary_switches", "minor_faults", "major_faults", "peak_rss_bytes")
    times = {"wall_ns": round(end_s * 1e9), "user_ns": 0, "system_ns": 0}
    return [
        Started(at_ns=START_NS, role="workload", index=0, pid=42),
        Exited(at_ns=1, role="workload", index=0, exit_code=0, **times, **dict.fromkeys(rest, 0)),
        *(Sample(at_ns=second(at_s), source="vmstat", values={"nr_written": value}) for at_s, value in readings),
        Sampled(at_ns=2, index=0, source="vmstat", readings=len(readings), **end),
    ]


def timeline(take: Any, **more: Any) -> Timeline:
    fields = {"name": "m", "source": "vmstat", "key": "nr_written", "take": take, "counter": True}
    return Timeline.model_validate(fields | more)


def taken(take: Any, readings: Readings, end_s: float = 1.0, **more: Any) -> float:
    samples = sampling(workload_events(readings, end_s))
    assert samples is not None
    return measure(timeline(take, **more), samples)


STEPS: Readings = [(-0.001, 100), (1, 100), (2, 200), (3, 200), (4, 600)]


@pytest.mark.parametrize(
    ("take", "value"),
    [("growth", 500), ("maximum", 600), ("minimum", 100), ("last", 600), ("rate", 500 / 4.001)],
)
def test_what_is_taken_from_the_workloads_start_on(take: str, value: float) -> None:
    assert taken(take, STEPS) == pytest.approx(value)


def test_the_mean_is_by_time_not_by_reading() -> None:
    assert taken("mean", [(0, 0), (1, 10), (1.5, 10), (2, 10)]) == pytest.approx(7.5)
    assert taken("mean", [(0, 5)]) == 5


@pytest.mark.parametrize(("fraction", "delay"), [(0.1, 1.5), (0.2, 2.0), (0.6, 3.5), (1.0, 4.0)])
def test_a_delay_lies_on_the_line_between_two_readings(fraction: float, delay: float) -> None:
    assert taken("delay", STEPS, fraction=fraction) == pytest.approx(delay)


def test_since_the_end_the_reading_of_the_end_is_the_first() -> None:
    readings = [(0, 0), (0.9, 50), (1.0001, 80), (2, 80), (3, 180)]
    assert taken("growth", readings, since="end") == 100
    assert taken("delay", readings, since="end", fraction=0.5) == pytest.approx(1.5)
    assert taken("growth", readings) == 180


def test_what_falls_has_a_delay_too_if_it_is_no_counter() -> None:
    assert taken("delay", [(0, 100), (1, 100), (2, 0)], counter=False, fraction=0.5) == pytest.approx(1.5)


def test_a_counter_that_is_counted_loosely_is_none_that_was_reset() -> None:
    assert taken("growth", [(0, 0), (1, 1281), (2, 1280)]) == 1280
    fallen: Any
    for fallen in ([(0, 5000), (1, 6000), (2, 3)], [(0, 2**32 - 5), (1, 2**32 - 1), (2, 2)]):
        with pytest.raises(ParseError, match=r"went back from \d+ to \d, 2\.000 s after the workload's start"):
            taken("growth", fallen)


def test_of_large_counters_nothing_is_lost() -> None:
    base = 2**64 - 5
    assert taken("growth", [(0, base), (1, base + 3)]) == 3
    assert taken("delay", [(0, base), (1, base + 2)], fraction=0.5) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("take", "readings", "words"),
    [
        ("growth", [(0, 1)], "read only once since the workload's start"),
        ("delay", [(0, 1), (1, 1)], "there is no delay of its change"),
        ("rate", [(0, 1), (0, 2)], "there is no rate"),
    ],
)
def test_what_cannot_be_taken_says_why(take: str, readings: Readings, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        taken(take, readings)


readings_of_a_counter = st.lists(st.tuples(st.integers(1, 10_000), st.integers(0, 2**40)), min_size=2, max_size=30).map(
    lambda steps: [(sum(s for s, _ in steps[:n]) / 1000, sum(g for _, g in steps[:n])) for n in range(len(steps))]
)


@given(readings_of_a_counter, st.floats(0.01, 1), st.floats(0.01, 1))
@example([(0.0, 0), (0.001, 0), (0.398, 0), (1.473, 1)], 0.5, 0.5)
def test_delays_lie_within_the_readings_and_in_the_order_of_their_fractions(
    readings: Readings, fraction: float, other_fraction: float
) -> None:
    if readings[0][1] == readings[-1][1]:
        return
    less, more = (taken("delay", readings, fraction=part) for part in sorted((fraction, other_fraction)))
    assert 0 <= less <= more <= readings[-1][0]
    assert taken("delay", readings, fraction=1.0) <= readings[-1][0]


@given(readings_of_a_counter, st.integers(0, 2**60))
def test_where_a_counter_began_does_not_matter(readings: Readings, base: int) -> None:
    moved = [(at_s, value + base) for at_s, value in readings]
    assert taken("growth", moved) == taken("growth", readings)
    assert taken("rate", moved) == taken("rate", readings)


def all_of(events: list[Event], *timelines: Timeline) -> MeasuredTimeline:
    return measure_all(timelines, events)


def test_a_figure_that_is_not_there_is_not_supported_and_no_flaw() -> None:
    events = workload_events([(0, 1), (1, 2)])
    result = all_of(events, timeline("growth"), timeline("growth", key="nr_x", name="other"))
    assert (result.metrics, result.flagged) == ({"m": 1.0}, [])
    assert result.not_supported == {"other": "vmstat has no nr_x here"}
    missing = workload_events([], not_supported="/proc/vmstat: No such file or directory")
    assert all_of(missing, timeline("growth")).not_supported == {"m": "/proc/vmstat: No such file or directory"}


def test_readings_that_were_cut_off_are_a_flaw() -> None:
    result = all_of(workload_events([(0, 1), (1, 2)], full=True), timeline("growth"))
    assert (result.metrics, len(result.flagged)) == ({}, 1)
    assert "no more room" in result.flagged[0]


def test_a_workload_that_never_started_has_no_timeline() -> None:
    assert all_of(workload_events([(0, 1), (1, 2)])[1:], timeline("growth")).flagged
    assert all_of([]) == MeasuredTimeline()

"""The stream of events, complete, cut, changed and invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.executor.stream import read_boot, read_trial
from ajuste.model.event import parse_event
from ajuste.model.plan import Command, FileLocation, Plan, Read, Sampler, Trace, Write

PLAN = Plan(
    id="b0p2",
    reads=(Read(tunable="latency", location=FileLocation(path="/proc/sys/kernel/x")),),
    writes=(Write(tunable="granularity", location=FileLocation(path="/proc/sys/kernel/y"), value="7500000"),),
    background=(Command(argv=("/bin/spin",)),),
    workload=Command(argv=("/bin/matrix",)),
    counters=("context-switches",),
    output_limit_bytes=10,
)


def exited(role: str) -> dict[str, object]:
    figures = ("wall_ns", "user_ns", "system_ns", "voluntary_switches", "involuntary_switches", "minor_faults")
    rest = ("major_faults", "peak_rss_bytes")
    return {"event": "exited", "role": role, "index": 0, "exit_code": 0, **dict.fromkeys((*figures, *rest), 3)}


EVENTS: list[dict[str, object]] = [
    {"event": "accepted", "id": "b0p2"},
    {"event": "read", "tunable": "latency", "value": "6000000"},
    {"event": "written", "tunable": "granularity", "asked": "7500000", "before": "1", "after": "7500000"},
    {"event": "started", "role": "background", "index": 0, "pid": 42},
    {"event": "loaded", "settled": True, "waited_ns": 40_000_000, "processes": 1, "used_ns": [39_000_000]},
    {"event": "started", "role": "workload", "index": 0, "pid": 43},
    exited("workload"),
    exited("background"),
    {"event": "output", "role": "workload", "index": 0, "stream": "stdout", "text": "é 1.5\n"},
    {"event": "counter", "name": "context-switches", "value": 136},
    {"event": "end", "id": "b0p2", "ok": True, "events": 10},
]


def as_lines(events: list[dict[str, object]]) -> bytes:
    return b"".join(json.dumps({"at_ns": 10 + n, **e}).encode() + b"\n" for n, e in enumerate(events))


WHOLE = as_lines(EVENTS)


def test_a_whole_stream_is_taken_as_it_came() -> None:
    stream = read_trial(WHOLE, PLAN)
    assert stream.problem == ""
    assert stream.lines.encode() == WHOLE
    assert [event.event for event in stream.events] == [event["event"] for event in EVENTS]


KEY = b"0123456789abcdef0123456789abcdef"


def sealed(whole: bytes) -> bytes:
    return b"".join(KEY + line + b"\n" for line in whole.splitlines())


def test_the_key_of_a_trial_is_on_every_line_and_in_none_that_is_kept() -> None:
    stream = read_trial(sealed(WHOLE), PLAN, key=KEY)
    assert stream.problem == ""
    assert stream.lines.encode() == WHOLE


@pytest.mark.parametrize("number", range(1, len(EVENTS) + 1))
def test_a_line_without_the_key_is_not_the_agents(number: int) -> None:
    lines = sealed(WHOLE).splitlines(keepends=True)
    lines[number - 1] = lines[number - 1].removeprefix(KEY)
    stream = read_trial(b"".join(lines), PLAN, key=KEY)
    assert f"line {number} of the events lacks the key of the trial, so the agent did not write it" in stream.problem


@given(st.binary(min_size=1, max_size=100), st.integers(0, len(EVENTS)))
def test_what_somebody_else_writes_before_a_line_is_a_problem(foreign: bytes, place: int) -> None:
    lines = sealed(WHOLE).splitlines(keepends=True)
    stream = read_trial(b"".join([*lines[:place], foreign, *lines[place:]]), PLAN, key=KEY)
    assert stream.problem != ""


@given(st.integers(0, len(sealed(WHOLE)) - 1))
def test_the_key_is_never_shown(length: int) -> None:
    for said_of_it in (sealed(WHOLE)[:length], sealed(WHOLE)[:length] + b"x" + sealed(WHOLE)[length:]):
        stream = read_trial(said_of_it, PLAN, key=KEY)
        assert KEY.decode() not in stream.problem + stream.lines


def test_the_contracts_example_is_a_beginning_and_a_trial() -> None:
    example = Path(__file__).parents[2].joinpath("contract/events/trial.jsonl").read_bytes()
    boot = read_boot(example)
    assert boot.problem == ""
    assert boot.hello is not None
    assert boot.hello.cpus == 1
    # Its end says that not all went well, so nothing is missing.
    samplers = (
        Sampler(source="vmstat", keys=("nr_dirty", "pgpg*"), interval_ns=10**8),
        Sampler(source="pressure", keys=("*",), interval_ns=10**8),
    )
    plan = Plan(id="b0p2", samplers=samplers, trace=Trace(buffer_bytes=1 << 16))
    assert read_trial(boot.rest, plan).problem == ""


@given(st.integers(0, len(WHOLE) - 1))
def test_a_stream_that_was_cut_is_never_whole(length: int) -> None:
    stream = read_trial(WHOLE[:length], PLAN)
    assert stream.problem != ""
    assert WHOLE.startswith(stream.lines.encode())


@given(st.integers(0, len(WHOLE) - 1), st.binary(max_size=3))
def test_nothing_of_a_changed_stream_is_dropped_or_read_as_something_else(at: int, instead: bytes) -> None:
    changed = WHOLE[:at] + instead + WHOLE[at + 1 :]
    stream = read_trial(changed, PLAN)
    raw = changed.split(b"\n")[: len(stream.events)]
    assert stream.lines.encode() == b"".join(line + b"\n" for line in raw)
    assert [parse_event(line) for line in raw] == list(stream.events)
    if not stream.problem:
        assert stream.lines.encode() == changed
        assert [event.event for event in stream.events] == [event["event"] for event in EVENTS]


@given(st.binary(max_size=300))
def test_noise_is_no_stream(noise: bytes) -> None:
    assert read_trial(noise, PLAN).problem != ""
    assert read_boot(noise).problem != ""


@given(st.integers(0, len(EVENTS) - 1))
def test_a_lost_event_is_noticed_even_if_the_end_does_not_count_it(lost: int) -> None:
    events = EVENTS[:lost] + EVENTS[lost + 1 :]
    assert read_trial(as_lines(events), PLAN).problem != ""
    if events[-1]["event"] == "end":
        events[-1] = {**events[-1], "events": len(events) - 1}
        forged = read_trial(as_lines(events), PLAN)
        optional = EVENTS[lost]["event"] in ("started", "output")
        assert (forged.problem == "") == optional


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([], "sent nothing"),
        ([{"event": "accepted", "id": "other"}], "'other' was accepted, not 'b0p2'"),
        ([EVENTS[1]], "the first event is read, not accepted"),
        ([{"event": "failed", "stage": "plan", "message": "no"}], "not accepted: plan: no"),
        ([EVENTS[0], EVENTS[0]], "line 2 of the events is a second accepted"),
        ([EVENTS[0], {"event": "gate"}], "line 2 of the events is a second gate"),
        ([*EVENTS, EVENTS[1]], "line 12 of the events comes after the end"),
        ([*EVENTS[:-1], {**EVENTS[-1], "events": 8}], "the end counts 8 events, and 10 arrived"),
        ([*EVENTS[:-1], {**EVENTS[-1], "id": "x"}], "the end is that of the plan 'x'"),
        (
            [*EVENTS[:9], EVENTS[8], *EVENTS[9:10], {**EVENTS[10], "events": 11}],
            "stdout of the workload 0 is reported 2",
        ),
        ([*EVENTS[:8], {**EVENTS[8], "text": "x" * 31}], "line 9 of the events has 31 bytes of output"),
        (
            [*EVENTS[:2], {**EVENTS[2], "asked": "1"}, *EVENTS[3:]],
            "not all values that the plan asked for are reported",
        ),
    ],
)
def test_what_is_wrong_is_said(events: list[dict[str, object]], problem: str) -> None:
    assert problem in read_trial(as_lines(events), PLAN).problem


def test_a_malformed_line_is_shown_harmlessly() -> None:
    stream = read_trial(as_lines(EVENTS[:1]) + b"\x1b[2J not json\n", PLAN)
    assert stream.lines.encode() == as_lines(EVENTS[:1])
    assert "line 2 of the events is malformed" in stream.problem
    assert "\x1b" not in stream.problem


def test_a_plan_that_failed_may_lack_the_rest() -> None:
    failed = {"event": "failed", "stage": "write", "message": "Invalid argument", "tunable": "granularity"}
    events: list[Any] = [EVENTS[0], failed, {"event": "end", "id": "b0p2", "ok": False, "events": 2}]
    assert read_trial(as_lines(events), PLAN).problem == ""


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([], "sent nothing"),
        ([{"event": "gate"}], "sent gate where hello was expected"),
        ([{"event": "failed", "stage": "boot", "message": "cannot mount"}], "failed at boot: cannot mount"),
    ],
)
def test_a_guest_that_does_not_arrive_is_said(events: list[dict[str, object]], problem: str) -> None:
    assert problem in read_boot(as_lines(events)).problem

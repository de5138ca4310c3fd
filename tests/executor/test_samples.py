"""Samples that samplers report, against what the plan asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ajuste.executor.stream import read_trial
from ajuste.model.plan import Command, Plan, Sampler

PLAN = Plan(
    id="p",
    workload=Command(argv=("/bin/true",)),
    timeout_ns=1_000_000_000,
    samplers=(
        Sampler(source="vmstat", keys=("nr_dirty", "pgpg*"), interval_ns=1_000_000_000),
        Sampler(source="stat", keys=("ctxt",), interval_ns=1_000_000_000),
    ),
)
ZEROS = dict.fromkeys(
    (
        *("wall_ns", "user_ns", "system_ns", "voluntary_switches", "involuntary_switches", "minor_faults"),
        *("major_faults", "peak_rss_bytes"),
    ),
    0,
)
VMSTAT: dict[str, Any] = {"event": "sample", "source": "vmstat", "values": {"nr_dirty": 3, "pgpgin": 2**64 - 1}}
STAT: dict[str, Any] = {"event": "sample", "source": "stat", "values": {"ctxt": 3}}


def sampled(index: int, source: str, readings: int, **more: Any) -> dict[str, Any]:
    return {"event": "sampled", "index": index, "source": source, "readings": readings, **more}


def problem(*events: dict[str, Any]) -> str:
    whole: list[dict[str, Any]] = [
        {"event": "accepted", "id": "p"},
        {"event": "exited", "role": "workload", "index": 0, "exit_code": 0, **ZEROS},
        *events,
        {"event": "end", "id": "p", "ok": True, "events": len(events) + 2},
    ]
    output = b"".join(json.dumps({"at_ns": 10 + n, **e}).encode() + b"\n" for n, e in enumerate(whole))
    return read_trial(output, PLAN).problem


def test_what_was_asked_for_is_taken() -> None:
    assert problem(VMSTAT, STAT, VMSTAT, sampled(0, "vmstat", 2), sampled(1, "stat", 1)) == ""


def test_a_source_that_is_not_there_is_no_problem() -> None:
    missing = sampled(0, "vmstat", 0, not_supported="/proc/vmstat: No such file or directory")
    assert problem(STAT, missing, sampled(1, "stat", 1)) == ""


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([STAT, sampled(1, "stat", 1)], "not all samplers of the plan are reported"),
        ([sampled(0, "vmstat", 0), sampled(1, "stat", 1)], "0 samples of stat arrived, but the agent read 1"),
        ([VMSTAT, sampled(0, "vmstat", 0), sampled(1, "stat", 0)], "1 samples of vmstat arrived, but the agent read 0"),
        ([sampled(0, "stat", 0), sampled(1, "stat", 0)], "the sampler 0 is reported with stat"),
        ([sampled(0, "vmstat", 0), sampled(1, "stat", 0), sampled(1, "stat", 0)], "sampler 1 is reported 2 times"),
        ([sampled(7, "stat", 0)], "the sampler 7 is reported with stat, which is not the plan's"),
        ([STAT | {"source": "meminfo"}], "a sample is of meminfo, which the plan does not sample"),
        ([STAT | {"values": {"\x1b[2J": 1}}], "has '\\x1b[2J', which the plan does not ask for"),
        ([STAT | {"values": {"ctxt": 2**64}}], "a figure that no 64-bit machine can have"),
        ([STAT | {"at_ns": 2}, VMSTAT | {"at_ns": 1}], "comes before the one that was read earlier"),
        ([*[STAT] * 40, sampled(0, "vmstat", 0), sampled(1, "stat", 40)], "read 40 times, more than the plan allows"),
    ],
)
def test_what_cannot_be_is_said(events: list[dict[str, Any]], words: str) -> None:
    assert words in problem(*events)

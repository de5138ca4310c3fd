from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.model.cost import Costs, CostTask, Role
from ajuste.model.event import (
    Accepted,
    Counter,
    End,
    Event,
    Exited,
    Failed,
    Loaded,
    Output,
    Paused,
    Started,
    Written,
    parse_event,
)
from ajuste.model.plan import Command, FileLocation, Plan, Write
from ajuste.model.trial import Observation, Slot, Trial
from ajuste.model.tunable import same_value
from ajuste.outputs.base import BASE_METRICS, counters_for
from ajuste.outputs.pattern import Pattern, Pointer
from ajuste.outputs.trial_status import TrialReading, trial

SLOT = Slot(block=0, position=2, configuration="knob=1", seed=9)
PLAN = Plan(
    id="b0p2",
    writes=(Write(tunable="knob", location=FileLocation(path="/proc/sys/kernel/knob"), value="7500000"),),
    background=(Command(argv=("spin",)),),
    workload=Command(argv=("job",)),
    counters=("task-clock", "cycles"),
)


def exited(**more: Any) -> Exited:
    fields: dict[str, Any] = {
        "at_ns": 5,
        "role": "workload",
        "index": 0,
        "exit_code": 0,
        "wall_ns": 2_000_000_000,
        "user_ns": 990_000_000,
        "system_ns": 10_000_000,
        "voluntary_switches": 1,
        "involuntary_switches": 135,
        "minor_faults": 120,
        "major_faults": 2,
        "peak_rss_bytes": 2_097_152,
        **more,
    }
    return Exited.model_validate(fields)


def events(**changed: Event | None) -> list[Event]:
    """A clean trial, with some of its events replaced or (``None``) left out."""
    clean: dict[str, Event | None] = {
        "accepted": Accepted(at_ns=1, id="b0p2"),
        "written": Written(at_ns=2, tunable="knob", asked="7500000", before="750000", after="7500000"),
        "load_started": Started(at_ns=3, role="background", index=0, pid=41),
        "started": Started(at_ns=4, role="workload", index=0, pid=42),
        "exited": exited(),
        "load_exited": exited(role="background", exit_code=None, signal=9),
        "stdout": Output(at_ns=6, role="workload", index=0, stream="stdout", text="rate: 5\n"),
        "clock": Counter(at_ns=7, name="task-clock", value=1_000_000_000, enabled_ns=5, running_ns=5),
        "cycles": Counter(at_ns=7, name="cycles", not_supported="No such file or directory"),
        "failed": None,
        "end": End(at_ns=8, id="b0p2", ok=True, events=9),
    }
    return [event for event in {**clean, **changed}.values() if event is not None]


def judge(recorded: list[Event], reading: TrialReading | None = None, problem: str = "", console: str = "c") -> Trial:
    lines = "".join(event.model_dump_json() + "\n" for event in recorded)
    observation = Observation(lines=lines, events=tuple(recorded), problem=problem, console=console, host_seconds=1.5)
    return trial(SLOT, 1, PLAN, observation, reading or TrialReading(endless=(True,)), started="now")


def test_what_the_lens_counted_of_the_workload_replaces_what_the_agent_could_not() -> None:
    def task(number: int, role: Role, user: int, kernel: int) -> CostTask:
        return CostTask(
            number=number,
            parent=None,
            role=role,
            user=user,
            kernel=kernel,
            loads=0,
            stores=0,
            branches=user // 2,
            switches_in=1,
            entry=None,
            frames=(),
            code=(),
        )

    tasks = (task(0, "workload", 100, 30), task(1, "workload", 10, 3), task(2, "background", 1000, 1))
    costs = Costs(version=1, depth="counts", user=1110, kernel=34, faulted=0, tasks=tasks)
    lacking = Counter(at_ns=7, name="instructions", not_supported="No such file or directory")
    recorded = events(clock=lacking)
    plan = PLAN.model_copy(update={"counters": ("instructions", "cycles")})
    counted = trial(SLOT, 1, plan, Observation(events=tuple(recorded), costs=costs), TrialReading(endless=(True,)))
    exact = {"instructions": 143, "user-instructions": 110, "kernel-instructions": 33, "branches": 55}
    assert {name: counted.metrics[name] for name in exact} == exact
    assert set(counted.not_supported) == {"cycles", "ipc"}
    assert set(judge(recorded).not_supported) == {"instructions", "cycles", "ipc"}


def test_a_clean_trial_has_its_metrics_in_their_units_and_keeps_everything() -> None:
    judged = judge(events())
    assert (judged.status, judged.reason, judged.attempt, judged.slot) == ("ok", "", 1, SLOT)
    assert judged.metrics == {
        "elapsed": 2.0,
        "user-time": 0.99,
        "system-time": 0.01,
        "voluntary-switches": 1.0,
        "involuntary-switches": 135.0,
        "minor-faults": 120.0,
        "major-faults": 2.0,
        "peak-rss": 2_097_152.0,
        "task-clock": 1000.0,
        "cpus-utilized": 0.5,
    }
    assert judged.not_supported["cycles"] == "No such file or directory"
    assert "cycles" not in judged.metrics
    assert judged.written[0].after == "7500000"
    assert len(judged.events.splitlines()) == len(events())
    assert (judged.console, judged.started, judged.host_seconds) == ("c", "now", 1.5)


def test_instructions_per_cycle_need_both_counters() -> None:
    counters = {
        "cycles": Counter(at_ns=7, name="cycles", value=100),
        "instructions": Counter(at_ns=7, name="instructions", value=250),
    }
    assert judge(events(**counters)).metrics["ipc"] == 2.5
    missing = {**counters, "instructions": Counter(at_ns=7, name="instructions", not_supported="no PMU")}
    judged = judge(events(**missing))
    assert "ipc" not in judged.metrics
    assert judged.not_supported["ipc"] == "no PMU"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"exited": exited(exit_code=3)}, "the workload exited with code 3"),
        ({"exited": exited(exit_code=None, signal=11)}, "the workload was killed by signal 11"),
        ({"exited": exited(exit_code=None, signal=15, timed_out=True)}, "the workload was stopped at its time limit"),
        (
            {"written": Written(at_ns=2, tunable="knob", asked="7500000", before="1", after="1000000")},
            "knob: 7500000 was written and 1000000 read back",
        ),
        ({"written": None}, "knob was not written"),
        (
            {"written": Written(at_ns=2, tunable="knob", asked="1", before="1", after="1")},
            "knob: 1 was written instead of 7500000",
        ),
        ({"load_exited": exited(role="background")}, "background load 1 ended before the workload"),
        ({"load_exited": exited(role="background", exit_code=1)}, "background load 1 exited with code 1"),
        (
            {"load_exited": exited(role="background", exit_code=None, signal=11)},
            "background load 1 was killed by signal 11",
        ),
        ({"load_started": None, "load_exited": None}, "background load 1 did not run"),
        (
            {"loaded": Loaded(at_ns=3, settled=False, waited_ns=5, processes=2, used_ns=(1,))},
            "the background load had not settled when the workload started",
        ),
    ],
)
def test_what_was_not_measured_cleanly_is_flagged_with_its_metrics_kept(changed: dict[str, Any], reason: str) -> None:
    judged = judge(events(**changed))
    assert (judged.status, judged.reason) == ("flagged", reason)
    assert judged.metrics["involuntary-switches"] == 135


def test_what_the_kernel_makes_of_a_value_counts_where_the_study_says_so() -> None:
    clamped = events(written=Written(at_ns=2, tunable="knob", asked="7500000", before="1", after="1000000"))
    taken = judge(clamped, TrialReading(endless=(True,), rounded=frozenset({"knob"})))
    assert (taken.status, taken.written[0].after) == ("ok", "1000000")
    assert judge(clamped, TrialReading(endless=(True,), rounded=frozenset({"other"}))).status == "flagged"


def test_a_load_that_may_end_may_end_well() -> None:
    assert judge(events(load_exited=exited(role="background")), TrialReading(endless=(False,))).status == "ok"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            {
                "failed": Failed(at_ns=7, stage="write", message="Invalid argument", tunable="knob"),
                "end": End(at_ns=8, id="b0p2", ok=False, events=9),
            },
            "write knob: Invalid argument",
        ),
        ({"end": End(at_ns=8, id="b0p2", ok=False, events=9)}, "the agent reported a failure without a reason"),
        ({"exited": None}, "the agent did not say how the workload ended"),
        ({"accepted": Accepted(at_ns=1, id="other")}, "the events are of b0p2, other, not of b0p2"),
        ({"exited": exited(wall_ns=10**400)}, "the agent reported figures that no 64-bit machine can have"),
        ({"exited": exited(minor_faults=-1)}, "the agent reported figures that no 64-bit machine can have"),
    ],
)
def test_what_was_not_measured_is_failed_without_metrics(changed: dict[str, Any], reason: str) -> None:
    judged = judge(events(**changed))
    assert (judged.status, judged.reason, judged.metrics) == ("failed", reason, {})


def test_a_scheduler_that_does_not_load_is_the_reason_and_not_the_program_that_loads_it() -> None:
    prefix = "/ajuste/bin/ajuste-workloads ended with exit code 1: ajuste-workloads:"
    before = Failed(at_ns=7, stage="before", message=f"{prefix} scx_mine did not load its scheduler", tunable=None)
    after = Failed(at_ns=8, stage="after", message=f"{prefix} no scheduler was loaded", tunable=None)
    ejected = Failed(at_ns=8, stage="after", message=f"{prefix} the kernel ejected the scheduler mine", tunable=None)
    assert judge(events(failed=before, other=after)).reason == "scx_mine did not load its scheduler"
    assert judge(events(failed=ejected)).reason == "the kernel ejected the scheduler mine"
    assert judge(events(failed=after)).reason == "no scheduler was loaded"


def test_a_problem_of_the_stream_fails_the_trial_whatever_else_it_says() -> None:
    judged = judge(events(), problem="the guest panicked")
    assert (judged.status, judged.reason, judged.metrics) == ("failed", "the guest panicked", {})
    assert judge([], problem="hung").status == "failed"


def test_a_line_of_the_console_that_must_not_be_printed_fails_the_trial() -> None:
    console = "[1.0] all well\n[2.0] WARNING: CPU: 1 PID: 9 at lib/refcount.c\n"
    judged = judge(events(), TrialReading(endless=(True,), console_failure="BUG|WARNING:"), console=console)
    assert (judged.status, judged.metrics) == ("failed", {})
    assert judged.reason == "the kernel printed: [2.0] WARNING: CPU: 1 PID: 9 at lib/refcount.c"
    for pattern in (r"(?i)warning:", r"(W)ARNING: CPU: (\d) .*lib/(r)efcount", r"(N)I\1G"):
        read = TrialReading(endless=(True,), console_failure=pattern)
        assert judge(events(), read, console=console).reason == judged.reason, pattern
    well = judge(events(), TrialReading(endless=(True,), console_failure="^WARNING"), console=console)
    assert well.status == "ok"
    endless = judge(events(), TrialReading(endless=(True,), console_failure="(a+)+b"), console="a" * 4000)
    assert endless.status == "failed"
    assert "backtrack" in endless.reason


def test_outputs_are_read_by_patterns_or_parsers_and_a_misunderstood_one_is_flagged() -> None:
    rate = TrialReading(patterns=(Pattern(metric="rate", pattern=r"rate: (\d+)"),), endless=(True,))
    assert judge(events(), rate).metrics["rate"] == 5.0
    wrong = Output(at_ns=6, role="workload", index=0, stream="stdout", text="no", dropped_bytes=70)
    judged = judge(events(stdout=wrong), rate)
    assert judged.status == "flagged"
    assert judged.reason.startswith('no line of stdout matches the pattern of "rate"')
    assert judged.reason.endswith("(70 bytes of output were dropped)")
    assert judged.metrics["elapsed"] == 2.0
    hackbench = Output(at_ns=6, role="workload", index=0, stream="stdout", text="Time: 0.25\n")
    assert judge(events(stdout=hackbench), TrialReading(parser="hackbench")).metrics["hackbench.time"] == 0.25


@pytest.mark.parametrize("figure", ["1e300", "-1e200", "1e-300"])
def test_a_figure_whose_square_no_float_can_hold_is_flagged(figure: str) -> None:
    printed = Output(at_ns=6, role="workload", index=0, stream="stdout", text=f'{{"a": {figure}}}')
    pointer = TrialReading(pointers=(Pointer(metric="foo", pointer="/a"),), endless=(True,))
    judged = judge(events(stdout=printed), pointer)
    assert (judged.status, "foo" in judged.metrics) == ("flagged", False)
    assert "expected a number between 1e-100 and 1e100" in judged.reason


def test_the_background_loads_output_is_not_the_workloads() -> None:
    other = Output(at_ns=6, role="background", index=0, stream="stdout", text="rate: 9\n")
    rate = TrialReading(patterns=(Pattern(metric="rate", pattern=r"rate: (\d+)"),), endless=(True,))
    assert judge(events(other=other), rate).metrics["rate"] == 5.0


@pytest.mark.parametrize(
    ("value", "other_value", "same"),
    [
        ("750000", "750000", True),
        ("0750000", "750000", True),
        ("1\t2 3", "1 2 3", True),
        ("Y", "1", True),
        ("N", "Y", False),
        ("0x10", "16", True),
        ("750001", "750000", False),
        ("bfq", "kyber", False),
        ("", "0", False),
    ],
)
def test_values_are_compared_as_the_kernel_means_them(value: str, other_value: str, same: bool) -> None:
    assert same_value(value, other_value) is same


def test_counters_are_asked_for_as_metrics_need_them() -> None:
    assert counters_for(["elapsed", "peak-rss"]) == ()
    assert counters_for(["ipc", "cpus-utilized"]) == ("task-clock", "cycles", "instructions")
    assert set(counters_for(BASE_METRICS)) == {
        "task-clock",
        "context-switches",
        "cpu-migrations",
        "page-faults",
        "cycles",
        "instructions",
        "cache-references",
        "cache-misses",
        "branches",
        "branch-misses",
    }


GOLDEN = Path(__file__).parents[2] / "contract" / "events" / "trial.jsonl"


def test_the_contracts_own_events_are_understood() -> None:
    recorded = [parse_event(line) for line in GOLDEN.read_text().splitlines()][2:]
    assert (
        judge(recorded, TrialReading()).reason
        == "write sched_latency_ns: Invalid argument; journal: No space left on device"
    )
    clean = [event for event in recorded if not isinstance(event, Failed | End | Paused)]
    end = End(at_ns=9, id="b0p2", ok=True, events=len(clean))
    plan = PLAN.model_copy(
        update={"writes": (PLAN.writes[0].model_copy(update={"tunable": "sched_min_granularity_ns"}),)}
    )
    observation = Observation(events=(*clean, end))
    assert trial(SLOT, 0, plan, observation, TrialReading(endless=(True,))).status == "ok"


@pytest.mark.parametrize(
    ("who", "reason"),
    [
        ("agent", "Ajuste was stopped for up to 10 s during the trial"),
        ("workload", "the workload was stopped from outside for up to 10 s during the trial"),
        ("background", "the background load was stopped from outside for up to 10 s during the trial"),
        ("machine", "the machine slept for up to 10 s during the trial"),
    ],
)
def test_a_trial_in_which_something_stood_still_is_flagged(who: str, reason: str) -> None:
    recorded = [parse_event(line) for line in GOLDEN.read_text().splitlines()][2:]
    paused = parse_event(f'{{"event":"paused","at_ns":1,"who":"{who}","paused_ns":10000000000}}')
    events = [event for event in recorded if not isinstance(event, Failed | End | Paused)]
    end = End(at_ns=9, id="b0p2", ok=True, events=len(events) + 1)
    plan = PLAN.model_copy(
        update={"writes": (PLAN.writes[0].model_copy(update={"tunable": "sched_min_granularity_ns"}),)}
    )
    judged = trial(SLOT, 0, plan, Observation(events=(*events, paused, end)), TrialReading(endless=(True,)))
    assert (judged.status, judged.reason) == ("flagged", reason)


NUMBERS = st.integers(-(10**3), 10**3) | st.integers(2**63, 2**70) | st.just(10**320)


@given(st.data())
def test_no_stream_of_events_raises(data: st.DataObject) -> None:
    """Drop, double, shuffle and change the figures of a clean stream at will."""
    drawn = []
    for event in data.draw(st.lists(st.sampled_from(events()), max_size=14)):
        fields = json.loads(event.model_dump_json())
        for name, value in fields.items():
            if type(value) is int and name != "at_ns" and data.draw(st.booleans()):
                fields[name] = data.draw(NUMBERS)
        drawn.append(type(event).model_validate(fields))
    made = judge(drawn, TrialReading(parser="matrix", endless=(True, False)))
    assert made.status in ("ok", "flagged", "failed")
    assert bool(made.reason) == (made.status != "ok")
    assert not (made.status == "failed" and made.metrics)

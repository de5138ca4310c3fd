"""Values are read by one plan that only reads, and what cannot be read says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.executor.host.availability import Current, current_values
from ajuste.model.event import Failed, Hello, ReadBack
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation


class Machine:
    """A target that answers reads as ``answer`` says, and remembers the plans."""

    def __init__(self, kernel: str, answer: Callable[[str], ReadBack | None] = lambda _: None, **observed: Any) -> None:
        self.hello = Hello(
            **dict(at_ns=0, version=1, agent="0", kernel=kernel, build="", machine="x86_64", cpus=1),
            **dict(memory_bytes=1, guest=True),
        )
        self.plans: list[Plan] = []
        self._answer = answer
        self._observed = observed

    def run(self, plan: Plan) -> Observation:
        self.plans.append(plan)
        answers = tuple(a for read in plan.reads if (a := self._answer(read.tunable)) is not None)
        return Observation(**{"events": answers, **self._observed})


def answering(value: Any = None, error: Any = None) -> Any:
    return lambda name: ReadBack(at_ns=1, tunable=name, value=value, error=error)


def read(machine: Any, *names: Any) -> Any:
    return current_values(machine, [catalogue().find_tunable(name) for name in names])


def test_all_are_read_by_one_plan_that_writes_nothing() -> None:
    machine = Machine("5.10.0-46-cloud-amd64", answering("7"))
    values = read(machine, "sched_latency_ns", "sched_feat_hrtick", "sched_rt_runtime_us")
    assert values == {
        "sched_latency_ns": Current(value="7", path="/proc/sys/kernel/sched_latency_ns"),
        "sched_feat_hrtick": Current(value="7", path="/sys/kernel/debug/sched_features (HRTICK)"),
        "sched_rt_runtime_us": Current(value="7", path="/proc/sys/kernel/sched_rt_runtime_us"),
    }
    (plan,) = machine.plans
    assert len(plan.reads) == 3
    assert plan.writes == ()
    assert plan.workload is None


def test_an_empty_value_is_a_value() -> None:
    assert read(Machine("6.12.1", answering("")), "sched_energy_aware")["sched_energy_aware"].value == ""


@pytest.mark.parametrize(
    ("kernel", "name", "error", "problem"),
    [
        ("6.1.0", "base_slice_ns", "", "base_slice_ns is not supported by Linux 6.1"),
        ("6.1.0", "nice", "", "attribute of the process"),
        ("6.12.0", "fair_server_runtime_ns", "", "requires an instance"),
        ("6.1.0", "sched_latency_ns", "/sys/x: Permission denied", "not readable: needs root"),
        ("6.1.0", "sched_latency_ns", "/sys/x: No such file or directory", "CONFIG_SCHED_DEBUG and debugfs mounted"),
        ("6.18.0", "base_slice_ns", "/sys/x: No such file or directory", "it requires debugfs mounted at"),
        ("6.1.0", "sched_util_clamp_min", "/p: No such file or directory", "a kernel with CONFIG_UCLAMP_TASK"),
        ("6.12.0", "sched_feat_ni_random", "no flag NI_RANDOM in /sys/x", "only since the end of 2025"),
        ("6.1.0", "sched_latency_ns", "/sys/x: Input/output error", "not readable: /sys/x: Input/output error"),
    ],
)
def test_what_cannot_be_read_says_why(kernel: Any, name: str, error: Any, problem: str) -> None:
    current = read(Machine(kernel, answering(error=error)), name)[name]
    assert current.value is None
    assert problem in current.problem


def test_a_machine_that_says_nothing_or_fails_is_no_crash() -> None:
    for observed, problem in (
        ({"problem": "the guest panicked"}, "the guest panicked"),
        ({"events": (Failed(at_ns=1, stage="plan", message="malformed"),)}, "malformed"),
        ({}, "did not report it"),
    ):
        machine = Machine("6.1.0", **observed)
        assert problem in read(machine, "sched_latency_ns")["sched_latency_ns"].problem


def test_nothing_is_run_if_there_is_nothing_to_read() -> None:
    machine = Machine("6.1.0")
    assert "base_slice_ns" in read(machine, "base_slice_ns", "nice")
    assert machine.plans == []

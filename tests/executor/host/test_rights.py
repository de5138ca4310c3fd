"""Requests that are refused without root before anything runs."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.cli.plan import plan_of
from ajuste.executor.host.availability import HostMachine
from ajuste.executor.host.rights import require_possible, require_rights, risks
from ajuste.machine.home import home
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Attributes, Command, FileLocation, Plan, Write
from ajuste.run.testbed import RunOptions
from ajuste.study.problem import StudySource
from ajuste.study.read import checked_study
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study
from ajuste.study.site import GUEST


@pytest.fixture
def ordinary(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Become a user with the given RLIMIT_NICE and RLIMIT_RTPRIO, as far as this process can see."""

    def limits(nice: int = 0, real_time: int = 0) -> None:
        by_resource = {resource.RLIMIT_NICE: nice, resource.RLIMIT_RTPRIO: real_time}
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        monkeypatch.setattr(os, "getpriority", lambda *_: 0)
        monkeypatch.setattr(resource, "getrlimit", lambda which: (by_resource[which], by_resource[which]))

    limits()
    return limits


def read(document: dict[str, object]) -> tuple[Study, ResolvedStudy]:
    """A study of this machine, and what it comes to there."""
    common = {"name": "s", "target": {"kind": "host"}, "analysis": {"metrics": ["elapsed"]}}
    study = checked_study({**common, **document}, StudySource(Path("s.toml"), ""), catalogue())
    kernel = {HOST_KERNEL: KernelVersion(major=6, minor=1)}
    return study, resolve(study, catalogue(), kernel, lambda name: f"/bin/{name}", replace(GUEST, in_place=True))


def runs(**attributes: object) -> Plan:
    return Plan(id="p", workload=Command(argv=("true",), attributes=Attributes.model_validate(attributes)))


@pytest.mark.usefixtures("ordinary")
@pytest.mark.parametrize(
    "plan", [runs(), runs(nice=0), runs(nice=19), runs(policy="batch"), runs(policy="idle"), runs(affinity=(0,))]
)
def test_much_can_be_done_without_root(plan: Plan) -> None:
    require_rights(plan)


@pytest.mark.usefixtures("ordinary")
@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (runs(nice=-1), "nice -1 needs root"),
        (runs(policy="fifo", priority=1), "the policy fifo needs root"),
        (runs(policy="rr"), "the policy rr needs root"),
        (runs(cgroup_weight=50), "a control group of its own needs root"),
        (
            Plan(id="p", writes=(Write(tunable="vm.x", location=FileLocation(path="/proc/sys/vm/x"), value="1"),)),
            "changing vm.x needs root",
        ),
        (
            Plan(id="p", background=(Command(argv=("true",), attributes=Attributes(nice=-20)),)),
            "nice -20 needs root",
        ),
    ],
)
def test_what_needs_root_is_refused_and_told_what_does_not(plan: Plan, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        require_rights(plan)
    assert caught.value.exit_code == 2
    assert "nice from 0 to 19" in (caught.value.hint or "")
    assert "in a guest" in (caught.value.hint or "")


def test_the_limits_of_a_user_count(ordinary: Callable[[int, int], None]) -> None:
    ordinary(30, 10)
    require_rights(runs(nice=-10))
    require_rights(runs(policy="fifo", priority=10))
    with pytest.raises(RequestError, match="nice -11"):
        require_rights(runs(nice=-11))
    with pytest.raises(RequestError, match="fifo"):
        require_rights(runs(policy="fifo", priority=11))


def test_a_disk_of_this_machine_is_overwritten_only_where_that_was_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    document: dict[str, object] = {
        "factor": [{"name": "command", "levels": ["a", "b"]}],
        "workload": {"variant": [{"name": name, "command": ["true"]} for name in ("a", "b")]},
        "scratch": {"device": "/dev/sdz"},
    }
    _, resolved = read(document)
    with pytest.raises(RequestError, match="/dev/sdz"):
        require_possible(resolved, catalogue(), accept_risk=False)
    require_possible(resolved, catalogue(), accept_risk=True)


def test_levels_that_need_control_groups_are_all_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(HostMachine, "controllers", None)
    settings = {"nice 0": {"nice": 0}, "half": {"cgroup_weight": 50}, "two fold": {"cgroup_weight": 200}}
    workload = {"command": ["true"]}
    _, resolved = read({"factor": [{"name": "task", "settings": settings}], "workload": workload})
    with pytest.raises(RequestError, match="task=half and task=two fold need a control group's weight") as raised:
        require_possible(resolved, catalogue(), accept_risk=False)
    assert "--without task=half --without 'task=two fold'" in str(raised.value.hint)
    _, resolved = read({"factor": [{"name": "cgroup_weight", "levels": [50, 200]}], "workload": workload})
    with pytest.raises(RequestError, match="control group's weight") as raised:
        require_possible(resolved, catalogue(), accept_risk=False)
    assert "--without" not in str(raised.value.hint)


def test_a_change_that_needs_root_can_be_planned_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(HostMachine, "is_writable", lambda *_: False)
    document: dict[str, object] = {
        "factor": [{"name": "vm.swappiness", "levels": [10, 60]}],
        "workload": {"command": ["true"]},
    }
    _, resolved = read(document)
    with pytest.raises(RequestError, match="root"):
        require_possible(resolved, catalogue(), accept_risk=False)
    require_possible(resolved, catalogue(), accept_risk=False, dry=True)


def test_a_study_that_runs_as_root_needs_root_and_its_plan_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    document: dict[str, object] = {
        "factor": [{"name": "nice", "levels": [0, 5]}],
        "workload": {"command": ["true"], "setup": ["true"], "as_root": True},
    }
    study, resolved = read(document)
    with pytest.raises(RequestError, match="root"):
        require_possible(resolved, catalogue(), accept_risk=False)
    planned = plan_of(study, catalogue(), RunOptions(home(), dry=True))
    commands = [command for configuration in planned.configurations for command in configuration.commands]
    assert {command.user for command in (*commands, *planned.once)} == {"root"}


def test_a_plan_boots_only_kernels_of_this_machine() -> None:
    document: dict[str, object] = {
        "factor": [{"name": "boot.kernel", "levels": ["default", "9.9"]}],
        "workload": {"command": ["true"]},
    }
    study, _ = read(document)
    with pytest.raises(RequestError, match=r'"9\.9" is not installed'):
        plan_of(study, catalogue(), RunOptions(home(), dry=True))


def test_a_value_that_the_machine_has_is_no_risk() -> None:
    name = "vm.overcommit_memory"
    now = Path("/proc/sys/vm/overcommit_memory").read_text().strip()
    other = "2" if now == "0" else "0"
    document: dict[str, object] = {
        "factor": [{"name": name, "levels": [now, other]}],
        "workload": {"command": ["true"]},
    }
    _, resolved = read(document)
    (risk,) = risks(resolved, catalogue())
    assert f"{name}={other} can hang" in risk.what

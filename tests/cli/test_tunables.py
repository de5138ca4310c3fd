"""``ajuste tunables``: what is printed, with a guest that is played by the test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ajuste.catalogue.loader import catalogue
from ajuste.cli import tunable_sheet, tunables
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Hello, ReadBack
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from ajuste.run.testbed import RunOptions
from ajuste.study.target import TargetTable


class PlayedGuest:
    """Says ``750000`` of everything."""

    booted: list[str] = []

    def __init__(self, release: str, cpus: int) -> None:
        self._release = release
        self._cpus = cpus

    def __enter__(self) -> Any:
        self.booted.append(self._release)
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def hello(self) -> Hello:
        fields = dict(at_ns=0, version=1, agent="0", build="", machine="x86_64", memory_bytes=1, guest=True)
        return Hello(kernel=self._release, cpus=self._cpus, **fields)

    def run(self, plan: Plan) -> Observation:
        assert not plan.writes
        return Observation(events=tuple(ReadBack(at_ns=1, tunable=r.tunable, value="750000") for r in plan.reads))


class PlayedTestbed:
    def __init__(self, options: RunOptions) -> None:
        pass

    def kernel_version(self, spec: str) -> KernelVersion:
        parse_spec(spec)
        return KernelVersion.parse(release_of(spec))

    def bare(self, target: TargetTable) -> PlayedGuest:
        return PlayedGuest(release_of(str(target.kernel)), target.cpus)


def release_of(spec: str) -> str:
    return {"debian:7": "7.3.4-cloud-amd64"}.get(spec, spec.removeprefix("debian:") + ".1-cloud-amd64")


class NoHost:
    def __enter__(self) -> Any:
        raise RunError("the agent does not work on this machine")

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def played(monkeypatch: pytest.MonkeyPatch, ajuste_home: Path) -> list[str]:
    monkeypatch.setenv("AJUSTE_HOME", str(ajuste_home))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(tunable_sheet, "HostExecutor", NoHost)
    for module in ("ajuste.run.testbed", "ajuste.cli.tunable_sheet"):
        monkeypatch.setattr(f"{module}.kernel_testbed", PlayedTestbed)
    PlayedGuest.booted.clear()
    return PlayedGuest.booted


def run(*arguments: str) -> str:
    result = attempt(*arguments)
    assert result.exit_code == 0, result.exception
    return result.stdout


def attempt(*arguments: str) -> Result:
    return CliRunner().invoke(tunables.app, list(arguments))


def test_the_list_has_every_tunable_a_line_each_when_it_is_no_terminal() -> None:
    lines = run().splitlines()
    names = [line.split("\t")[1] for line in lines]
    assert [name for name in names if not name.startswith("service.")] == list(catalogue().tunables)
    assert "service.nice" in names


def test_services_have_the_attributes_of_processes_under_names_of_their_own() -> None:
    rows = {row["name"]: row for row in json.loads(run("--json"))["tunables"]}
    titles = {name: row["title"] for name, row in rows.items() if name.startswith("service.")}
    assert titles == {
        "service.nice": "Nice value of a service",
        "service.policy": "Scheduling policy of a service",
        "service.affinity": "CPUs that a service may use",
        "service.cgroup_weight": "Weight of a service's control group",
    }
    assert {row["name"] for row in json.loads(run("search", "service", "--json"))["tunables"]} == set(titles)
    sheet = " ".join(run("show", "service.affinity").split())
    assert "The CPUs on which the service's process and its children may run." in sheet
    assert "the workload" not in sheet
    assert "The service runs in its own control group" in " ".join(run("show", "service.cgroup_weight").split())


def test_the_list_for_a_kernel_has_only_what_that_kernel_has_and_boots_nothing(played: list[str]) -> None:
    rows = {row["name"]: row for row in json.loads(run("--json", "--kernel", "debian:6.12"))["tunables"]}
    assert "sched_min_granularity_ns" not in rows
    assert rows["base_slice_ns"]["path"] == "/sys/kernel/debug/sched/base_slice_ns"
    assert rows["base_slice_ns"]["kernels"] == "6.6 and later"
    assert rows["nice"]["path"] is None
    assert {row["name"] for row in json.loads(run("--json"))["tunables"]} > set(rows)
    assert played == []


def test_the_newest_of_a_major_is_looked_up() -> None:
    names = {row["name"] for row in json.loads(run("--json", "--kernel", "debian:7"))["tunables"]}
    assert "sched_cgroup_mode" in names


def test_show_has_all_of_the_entry_and_the_value_in_the_guest(played: list[str]) -> None:
    text = " ".join(run("show", "sched_min_granularity_ns", "--kernel", "debian:5.10").split())
    assert "750000 ns on debian:5.10 (Linux 5.10.1-cloud-amd64, 1 CPU)" in text
    assert "0.75 ms × (1 + log2(CPUs))" in text
    assert "100000 … 1000000000 ns" in text
    assert "/proc/sys/kernel/sched_min_granularity_ns" in text
    assert "up to 5.12; needs CONFIG_SCHED_DEBUG" in text
    assert "Successor base_slice_ns" in text
    assert played == ["5.10.1-cloud-amd64"]


def test_show_names_the_successor_with_its_value_where_the_knob_is_gone() -> None:
    text = " ".join(run("show", "sched_min_granularity_ns", "--kernel", "debian:6.12").split())
    assert "sched_min_granularity_ns is not supported by Linux 6.12; kernels that have it: up to 6.5" in text
    assert "base_slice_ns = 750000 ns" in text
    assert "related but different" in text
    document = json.loads(run("show", "sched_min_granularity_ns", "--kernel", "debian:6.12", "--json"))
    assert document["value"] is None
    assert "sched_min_granularity_ns is not supported by Linux 6.12" in document["problem"]
    assert (document["instead"]["name"], document["instead"]["value"]) == ("base_slice_ns", "750000")


def test_show_says_what_it_acts_on_and_what_is_worth_trying() -> None:
    text = " ".join(run("show", "base_slice_ns", "--kernel", "debian:6.12").split())
    assert "Acts on waits for a CPU; delays from wake-up to run Worth trying 10ms, 0.3ms" in text
    document = json.loads(run("show", "base_slice_ns", "--kernel", "debian:6.12", "--json"))
    assert document["tunable"]["acts_on"] == ["cpu-wait", "wakeup"]
    assert document["tunable"]["tries"][0] == "10ms"
    assert "Acts on" not in run("show", "kernel.pid_max")


def test_show_as_json_has_value_place_and_value_at_boot() -> None:
    document = json.loads(run("show", "sched_min_granularity_ns", "--kernel", "debian:6.1", "--cpus", "2", "--json"))
    assert document["tunable"]["name"] == "sched_min_granularity_ns"
    assert document["value"] == "750000"
    assert document["initial"] == "1500000"
    assert document["path"] == "/sys/kernel/debug/sched/min_granularity_ns"
    assert (document["kernel"], document["cpus"]) == ("6.1.1-cloud-amd64", 2)
    assert document["instead"] is None


def test_of_several_the_first_is_read_or_the_one_that_is_named() -> None:
    first = json.loads(run("show", "fair_server_runtime_ns", "--kernel", "debian:6.12", "--json"))
    assert (first["name"], first["value"]) == ("fair_server_runtime_ns[cpu0]", "750000")
    named = json.loads(run("show", "fair_server_runtime_ns[cpu1]", "--kernel", "debian:6.12", "--json"))
    assert named["path"] == "/sys/kernel/debug/sched/fair_server/cpu1/runtime"


def test_show_explains_even_where_this_machine_cannot_be_asked() -> None:
    text = " ".join(run("show", "base_slice_ns").split())
    assert "not readable: the agent does not work on this machine" in text
    assert "virtual deadline" in text


def test_search_finds_by_words() -> None:
    assert "sched_autogroup_enabled" in run("search", "autogroup").splitlines()[0]
    names = [row["name"] for row in json.loads(run("search", "granularity", "wakeup", "--json"))["tunables"]]
    assert names[0] == "sched_wakeup_granularity_ns"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "sched_min_granularty_ns"), "tunable 'sched_min_granularty_ns' not found"),
        (("search", "xyzzy"), "no tunable matches xyzzy"),
        (("--kernel", "6.12"), "is not a kernel"),
        (("--json", "search", "nice"), "write the options after search"),
    ],
)
def test_wrong_requests_are_refused(arguments: Any, message: str) -> None:
    error = attempt(*arguments).exception
    assert isinstance(error, RequestError)
    assert message in error.message

"""A worker's machine: ready for one study, put back when that ends, however it ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self
from unittest.mock import Mock

import pytest

from ajuste.machine.files import file_sha256
from ajuste.machine.home import AGENT, ajuste_version, native_program
from ajuste.model.error import RequestError, RunError
from ajuste.model.plan import FileLocation, Plan, Write
from ajuste.model.trial import Observation, Slot
from ajuste.study.commands import plan_for
from ajuste.study.read import parse_study
from ajuste.study.schema import Study
from ajuste_fleet.cluster.messages import HostJob
from ajuste_fleet.cluster.worker import Bench, resolved_here
from played import PlayedExecutor


class Host(PlayedExecutor):
    """Remembers how often it was entered and left. A plan ``stuck`` waits until it is left."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = self.left = 0
        self.started, self.released = threading.Event(), threading.Event()

    def __enter__(self) -> Self:
        self.entered += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.left += 1
        self.released.set()

    def run(self, plan: Plan) -> Observation:
        self.plans.append(plan)
        if plan.id == "stuck":
            self.started.set()
            self.released.wait(30)
            raise RunError("the agent was ended")
        return Observation(lines=plan.id, host_seconds=0.5)


def study(name: str = "one", command: str = "true", factor: Sequence[Any] = ()) -> Study:
    tables = {"target": {"kind": "host"}, "analysis": {"metrics": ["elapsed"]}, "factor": list(factor)}
    return parse_study({"name": name, "workload": {"command": [command]}, **tables})


def parcel(**more: str) -> str:
    job_study = study(more.pop("name", "one"))
    fields: dict[str, Any] = {"ajuste": ajuste_version(), "agent": file_sha256(native_program(AGENT))}
    return HostJob(**(fields | {"study": job_study.model_dump_json(), "directory": "/"} | more)).model_dump_json()


def plans(*names: str, study_name: str = "one") -> list[Plan]:
    """Plans that the study has on this machine."""
    resolved = resolved_here(HostJob.model_validate_json(parcel(name=study_name)))
    slot = Slot(block=1, position=0, configuration=resolved.names[0], seed=3)
    return [plan_for(resolved, slot, 0).model_copy(update={"id": name}) for name in names]


def wait_for(happens: Callable[[], object]) -> None:
    pause = threading.Event()
    for _ in range(600):
        if happens():
            return
        pause.wait(0.05)
    raise AssertionError("it did not happen")


@pytest.fixture
def host() -> Host:
    return Host()


def test_a_machine_is_made_ready_once_for_all_blocks_of_a_study(host: Host) -> None:
    bench = Bench(lambda _: host)
    outcome = bench.carry_out(parcel(), plans("a", "b"))
    assert [transcript.lines for transcript in outcome.done or ()] == ["a", "b"]
    bench.carry_out(parcel(), plans("c"))
    assert (host.entered, host.left) == (1, 0)
    bench.close()
    assert (host.entered, host.left) == (1, 1)


def test_another_study_takes_the_place_of_the_one_before(host: Host) -> None:
    bench = Bench(lambda _: host)
    bench.carry_out(parcel(), plans("a"))
    bench.carry_out(parcel(name="two"), plans("b"))
    assert (host.entered, host.left) == (2, 1)
    bench.close()


def test_a_machine_that_nobody_comes_back_to_is_put_back_by_itself(host: Host) -> None:
    bench = Bench(lambda _: host, lease_s=0.05)
    bench.carry_out(parcel(), plans("a"))
    wait_for(lambda: host.left == 1)
    bench.carry_out(parcel(), plans("b"))
    assert host.entered == 2, "and is made ready again for who does"
    bench.close()


def test_a_coordinator_that_is_still_there_keeps_its_machine(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    leases: list[Mock] = []

    def lease(_: float, end: Callable[[], None]) -> Mock:
        leases.append(Mock(end=end))
        return leases[-1]

    monkeypatch.setattr(threading, "Timer", lease)
    bench = Bench(lambda _: host)
    bench.carry_out(parcel(), plans("a"))
    bench.renew(parcel(name="two"))
    assert not leases[0].cancel.called, "another coordinator's"
    bench.renew(parcel())
    assert leases[0].cancel.called
    leases[1].end()
    assert host.left == 1


def test_closing_ends_a_block_in_the_middle(host: Host) -> None:
    bench = Bench(lambda _: host)
    answers: list[Any] = []
    working = threading.Thread(target=lambda: answers.append(bench.carry_out(parcel(), plans("stuck", "never"))))
    working.start()
    assert host.started.wait(30)
    bench.close()
    assert host.left == 1, "everything is put back when it returns"
    working.join(30)
    assert answers[0].done is None, "a block that was cut short is none"
    assert [plan.id for plan in host.plans] == ["stuck"]


def test_what_cannot_be_made_ready_leaves_nothing_and_says_why() -> None:
    def refuse(_: Any) -> Host:
        raise RequestError("another experiment is running on this machine: process 7", hint="wait for it")

    with pytest.raises(RequestError, match="another experiment is running"):
        Bench(refuse).carry_out(parcel(), plans("a"))


def test_a_machine_says_what_it_is_and_what_the_study_comes_to_there(host: Host) -> None:
    survey = Bench(lambda _: host).survey(parcel())
    assert '"kind":"host"' in survey.resolved
    assert json.loads(survey.inventory)["kernel"]["release"] == Path("/proc/sys/kernel/osrelease").read_text().strip()
    assert host.entered == 0, "asking changes nothing"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [({"ajuste": "0.0.1"}, "instead of 0.0.1"), ({"agent": "0" * 64}, "its agent was built from other sources")],
)
def test_a_machine_with_other_programs_refuses(host: Host, changed: dict[str, str], reason: str) -> None:
    assert reason in Bench(lambda _: host).survey(parcel(**changed)).refusal  # type: ignore[operator]


def test_a_machine_that_lacks_a_program_refuses_by_name(host: Host) -> None:
    absent = study(command="no-such-job").model_dump_json()
    assert "no-such-job" in Bench(lambda _: host).survey(parcel(study=absent)).refusal  # type: ignore[operator]


def test_a_machine_that_lacks_a_tunable_refuses_by_name(host: Host) -> None:
    factor = {"name": "net.tx_queue_len[nowhere0]", "levels": [500, 1000]}
    missing = study(factor=[factor]).model_dump_json()
    assert "no network interface nowhere0" in Bench(lambda _: host).survey(parcel(study=missing)).refusal  # type: ignore[operator]


@pytest.mark.parametrize(
    "changed",
    [
        {"writes": (Write(tunable="x", location=FileLocation(path="/etc/shadow"), value="x"),)},
        {"background": Plan.model_validate({"id": "", "background": [{"argv": ["/bin/sh"]}]}).background},
        {"workload": None},
    ],
)
def test_a_plan_that_the_study_does_not_have_is_not_carried_out(host: Host, changed: dict[str, Any]) -> None:
    plan = plans("a")[0].model_copy(update=changed)
    with pytest.raises(RequestError, match="not found in the study on this machine"):
        Bench(lambda _: host).carry_out(parcel(), [plan])
    assert host.entered == 0


def test_what_needs_accepted_risk_is_not_carried_out_without(host: Host) -> None:
    refused = study(factor=[{"name": "vm.overcommit_memory", "levels": [0, 2]}]).model_dump_json()
    with pytest.raises(RequestError, match="can hang this machine"):
        Bench(lambda _: host).carry_out(parcel(study=refused), plans("a"))
    assert host.entered == 0


@pytest.mark.parametrize("text", ["{}", "[" * 100_000, parcel(study="{}"), parcel(study="[" * 100_000)])
def test_what_is_no_parcel_is_refused(host: Host, text: str) -> None:
    bench = Bench(lambda _: host)
    assert "cannot read the" in str(bench.survey(text).refusal)
    try:
        reason = bench.carry_out(text, []).refusal
    except RequestError as error:
        reason = str(error)
    assert "cannot read the" in str(reason)
    assert host.entered == 0


def test_one_coordinator_does_not_end_what_another_measures(host: Host) -> None:
    bench = Bench(lambda _: host)
    bench.carry_out(parcel(), plans("a"))
    bench.close_job(parcel(name="two"))
    assert host.left == 0
    bench.close_job(parcel())
    assert host.left == 1

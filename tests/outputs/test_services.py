"""Reading of the services of a trial: their accounts, and why a trial is lost because of one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ajuste.model.event import Accepted, End, Event, Exited, Failed, Output, Role
from ajuste.model.plan import Command, Plan
from ajuste.model.trial import Observation, Slot, Trial
from ajuste.outputs.services import service_metrics, service_values
from ajuste.outputs.trial_status import TrialReading, trial, why_lost

PLAN = Plan(id="b0p0", before=(Command(argv=("start",)),), workload=Command(argv=("job",)))
USE = {"cpu_ns": 2_000_000_000, "peak_rss_bytes": 4096, "voluntary_switches": 7, "involuntary_switches": 3}


def account(name: str = "redis", **more: Any) -> dict[str, Any]:
    return {"name": name, "use": USE, "died": None, "killed": False, "log": "", **more}


def output_event(document: object, role: Role = "after") -> Output:
    text = document if isinstance(document, str) else json.dumps(document, separators=(",", ":")) + "\n"
    return Output(at_ns=8, role=role, index=0, stream="stdout", text=text, dropped_bytes=0)


def ended(code: int = 0) -> Exited:
    return Exited.model_validate(
        {"at_ns": 5, "role": "workload", "index": 0, "exit_code": code, "wall_ns": 10, "user_ns": 1, "system_ns": 1}
        | dict.fromkeys(("voluntary_switches", "involuntary_switches", "minor_faults", "major_faults"), 0)
        | {"peak_rss_bytes": 1}
    )


def read(*events: Event) -> Trial:
    whole = (Accepted(at_ns=1, id=PLAN.id), *events, End(at_ns=9, id=PLAN.id, ok=True, events=1))
    lines = "".join(f"{json.dumps(event.model_dump())}\n" for event in whole)
    observation = Observation(events=whole, lines=lines)
    slot = Slot(block=0, position=0, configuration="a", seed=1)
    return trial(slot, 0, PLAN, observation, TrialReading(services=("redis",)))


def test_the_account_of_a_service_becomes_metrics() -> None:
    judged = read(ended(), output_event({"ajuste_services": [account()]}))
    assert (judged.status, judged.reason) == ("ok", "")
    assert judged.metrics["service-cpu"] == 2.0
    assert judged.metrics["service-peak-rss"] == 4096
    assert judged.metrics["service-voluntary-switches"] == 7
    assert "service-cpu.redis" not in judged.metrics


def test_of_several_services_there_is_each_and_the_sum() -> None:
    values = service_values([output_event({"ajuste_services": [account("a"), account("b")]})])
    assert (values["service-cpu"], values["service-cpu.a"], values["service-cpu.b"]) == (4.0, 2.0, 2.0)
    assert set(values) == {metric.name for metric in service_metrics(["a", "b"])}
    assert service_metrics([]) == ()


def test_a_service_that_died_fails_the_trial_whatever_the_workload_says() -> None:
    died = account(died={"exit_code": None, "signal": 11}, log="one\ntwo\n")
    judged = read(ended(1), output_event({"ajuste_services": [died]}))
    assert (judged.status, judged.metrics) == ("failed", {})
    assert judged.reason == "service redis was killed by signal 11 before the workload's end; its log ends: one / two"
    assert why_lost(judged) == judged.reason


def test_a_service_that_does_not_start_is_named_with_its_log() -> None:
    why = {"name": "redis", "why": "not ready after 3 s; waited until it runs", "log": "hm\n"}
    failed = Failed(at_ns=3, stage="before", message="ajuste-service ended with exit code 1", tunable=None)
    judged = read(output_event({"ajuste_service_failed": why}, "before"), failed)
    assert judged.status == "failed"
    assert judged.reason == "service redis: not ready after 3 s; waited until it runs; its log ends: hm"


def test_of_a_long_log_the_end_is_shown() -> None:
    log = "".join(f"{number} {'x' * 300}\n" for number in range(8))
    died = account(died={"exit_code": 1, "signal": None}, log=log)
    log_end = (
        read(ended(1), output_event({"ajuste_services": [died]})).reason.partition("its log ends: ")[2].split(" / ")
    )
    assert log_end == [f"{number} {'x' * 198}…" for number in (5, 6, 7)]


def test_one_that_had_to_be_killed_is_a_remark() -> None:
    judged = read(ended(), output_event({"ajuste_services": [account(killed=True)]}))
    assert (judged.status, judged.reason) == ("ok", "service redis was killed: it did not stop in time")


@pytest.mark.parametrize("text", ['{"ajuste_services":', '{"ajuste_services":[{"name":3}]}', "[]", ""])
def test_anything_else_has_no_accounts(text: str) -> None:
    judged = read(ended(), output_event(text))
    assert judged.status == "ok"
    assert not any(name.startswith("service-") for name in judged.metrics)


def test_what_a_workload_prints_is_never_an_account() -> None:
    printed = output_event({"ajuste_services": [account()]}).model_copy(update={"role": "workload"})
    assert service_values([printed]) == {}

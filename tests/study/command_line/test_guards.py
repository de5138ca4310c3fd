"""The order in which machines begin and what stops them, from the command line."""

from __future__ import annotations

from typing import Any

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.model.fleet import FleetPlan
from ajuste.study.command_line.conditions import fleet_plan
from ajuste.study.read import parse_study
from ajuste.study.schema import Study

TABLES: dict[str, Any] = {
    "name": "fleet",
    "target": {"kind": "host"},
    "workload": {"command": ["true"]},
    "analysis": {"metrics": ["elapsed"]},
    "factor": [{"name": "vm.swappiness", "levels": ["60", "10"]}],
}


def plan(
    canary: str | None = None,
    each: int | None = None,
    *guards: str,
    study: Study | None = None,
    on_cluster: bool = True,
) -> FleetPlan | None:
    return fleet_plan(canary, each, guards, study or parse_study(TABLES), catalogue(), on_cluster=on_cluster)


def test_nothing_said_is_no_plan_also_without_a_cluster() -> None:
    assert plan(on_cluster=False) is None


@pytest.mark.parametrize(
    ("text", "stages"), [("1,5,all", (1, 5, None)), ("all", (None,)), ("2", (2,)), (" 1 , 3 ", (1, 3))]
)
def test_stages_rise_to_a_number_or_to_all(text: str, stages: tuple[int | None, ...]) -> None:
    canary = plan(text)
    assert canary is not None
    assert (canary.stages, canary.cautious) == (stages, True)


@pytest.mark.parametrize("text", ["", "0,all", "5,1,all", "1,1", "all,5", "1;5", "-1,all", "1,few", "99999999"])
def test_other_stages_are_refused(text: str) -> None:
    with pytest.raises(RequestError, match="--canary"):
        plan(text)


def test_blocks_on_each_machine_are_no_canary_order() -> None:
    assert plan(None, 12) == FleetPlan(each=12)


def test_guards_are_those_of_a_live_experiment_on_the_metrics_of_a_trial() -> None:
    canary = plan(None, None, "elapsed < 2s", "user-time not worse than 20%")
    assert canary is not None
    limit, relative = canary.guards
    assert (limit.metric, limit.sign, limit.limit) == ("elapsed", "<", 2.0)
    assert (relative.metric, relative.sign, relative.limit) == ("user-time", None, 0.2)


def test_a_guard_of_an_unknown_metric_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RequestError, match="expected one of elapsed"):
        plan(None, None, "latency < 2s")


@pytest.mark.parametrize(
    ("arguments", "option"),
    [(("1,all", None), "--canary"), ((None, 3), "--machine-each"), ((None, None, "elapsed < 2s"), "--guard")],
)
def test_all_of_it_requires_machines_of_a_cluster(arguments: tuple[Any, ...], option: str) -> None:
    with pytest.raises(RequestError, match=f"{option} requires --cluster"):
        plan(*arguments, on_cluster=False)
    guest = parse_study({**TABLES, "target": {"kernel": "debian:6.1"}})
    with pytest.raises(RequestError, match=f"{option} requires --cluster"):
        plan(*arguments, study=guest)

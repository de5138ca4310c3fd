"""Guests of different topology, each standing for a machine of a cluster, and a setting whose effect is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.fleet.emulated import measured, shapes

from ajuste.machine.home import home
from ajuste.model.fleet import FleetPlan
from ajuste_fleet.model import canary_of, fleet_of

pytestmark = [pytest.mark.vm, pytest.mark.slow]

MACHINES = 20


def test_no_machine_is_like_another() -> None:
    assert len(set(shapes(MACHINES))) == MACHINES
    assert [shape.nodes for shape in shapes(MACHINES)].count(1) == MACHINES // 5


@pytest.mark.timeout(5400)
def test_the_answer_of_twenty_machines_says_where_the_setting_helps_and_where_it_hurts(tmp_path: Path) -> None:
    results = measured(MACHINES, FleetPlan(), tmp_path, home())
    (fleet,) = (metric for metric in fleet_of(results) if metric.metric == "elapsed")
    assert fleet.verdicts == {"improves": 16, "worsens": 4}
    assert fleet.differing is not None
    assert "one NUMA node" in {fleet.differing.fact, *fleet.differing.also}
    assert set(fleet.differing.machines) == {f"node{n:02}" for n in range(4)}
    assert results.verdicts[0].depends_on_machine


@pytest.mark.timeout(1800)
def test_where_the_setting_hurts_the_first_machine_no_other_one_has_it(tmp_path: Path) -> None:
    plan = FleetPlan(stages=(1, None), each=9, cautious=True)
    results = measured(3, plan, tmp_path, home(), single=1)
    assert {trial.machine for trial in results.trials} == {"node00"}
    canary = canary_of(results)
    assert canary is not None
    assert (canary.reached, canary.machines) == (1, 1)
    assert "worsens elapsed" in canary.stopped
    assert results.verdicts[0].verdict == "worsens"

"""Machines that begin in stages: which measure what, and what stops all of them; played, so that the truth is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.design.stopping import Stop
from ajuste.executor.executor import OnStart, TrialDone, TrialRequest
from ajuste.model.event import Accepted, End, Exited, Started, Written
from ajuste.model.fleet import FleetPlan
from ajuste.model.kernel import KernelVersion
from ajuste.model.live import Guard
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from ajuste.run.runner import Executors, Runner
from ajuste.store.store import Store
from ajuste.study.read import parse_study
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste_fleet.model import CanaryRecord
from ajuste_fleet.order import Fleet
from played import Notes, PlayedExecutor, begin

TRIED = "vm.swappiness=10"


def study() -> ResolvedStudy:
    tables = {
        "target": {"kind": "host"},
        "workload": {"command": ["true"]},
        "analysis": {"metrics": ["elapsed"]},
        "factor": [{"name": "vm.swappiness", "levels": ["60", "10"]}],
        "design": {"warm_up": 1},
    }
    here = {HOST_KERNEL: KernelVersion(major=6, minor=1)}
    return resolve(parse_study({"name": "fleet", **tables}), catalogue(), here, lambda name: f"/bin/{name}")


class Machines(PlayedExecutor):
    """Machines by name, each with the factor by which the tried value changes the elapsed time."""

    whole_blocks = True

    def __init__(self, effects: Mapping[str, float], noise: float = 0.01) -> None:
        super().__init__()
        self.effects = dict(effects)
        self.noise = noise
        self.random = np.random.default_rng(1)
        self.measured: list[tuple[str, int]] = []

    @property
    def present(self) -> tuple[str, ...]:
        return tuple(self.effects)

    def carry_out(self, requests: Sequence[TrialRequest], on_start: OnStart) -> Iterator[list[TrialDone]]:
        blocks: dict[int, list[TrialRequest]] = {}
        for request in requests:
            blocks.setdefault(request.slot.block, []).append(request)
        for number, block_requests in blocks.items():
            machine = block_requests[0].machine
            if machine not in self.effects:
                continue
            self.measured.append((machine, number))
            yield [self.done(request, machine) for request in block_requests]

    def done(self, request: TrialRequest, machine: str) -> TrialDone:
        plan = request.plan()
        factor = self.effects[machine] if request.slot.configuration == TRIED else 1.0
        seconds = factor * float(np.exp(self.random.normal(0, self.noise)))
        observation = Observation(events=tuple(played_events(plan, seconds)), host_seconds=seconds)
        return TrialDone(request, plan, "2026-01-01T00:00:00+00:00", observation, machine=machine)


def played_events(plan: Plan, seconds: float) -> Iterator[Any]:
    yield Accepted(at_ns=1, id=plan.id)
    for write in plan.writes:
        yield Written(at_ns=1, tunable=write.tunable, asked=write.value, before="60", after=write.value)
    yield Started(at_ns=1, role="workload", index=0, pid=2)
    used: dict[str, Any] = {"user_ns": 1, "system_ns": 1, "voluntary_switches": 1, "involuntary_switches": 1}
    used |= {"minor_faults": 1, "major_faults": 0, "peak_rss_bytes": 1, "wall_ns": round(seconds * 1e9)}
    yield Exited(at_ns=2, role="workload", index=0, exit_code=0, **used)
    yield End(at_ns=3, id=plan.id, ok=True, events=3)


def carry_out(machines: Machines, plan: FleetPlan, place: Path) -> tuple[Stop, CanaryRecord]:
    records: list[CanaryRecord] = []
    resolved = study()
    with (
        Store(f"sqlite:///{place}/store.sqlite") as store,
        Executors(lambda _: machines, lambda *_: None) as executors,
    ):
        fleet = Fleet(plan, resolved, lambda: machines.present, records.append)
        stop = Runner(resolved, begin(store), store, executors, Notes(), order=fleet).carry_out()
    return stop, records[-1]


def guard(text: str, sign: Any, limit: float) -> Guard:
    return Guard(text=text, metric="elapsed", sign=sign, limit=limit)


def names(count: int) -> list[str]:
    return [f"lab{number}" for number in range(count)]


ONE_FEW_ALL = FleetPlan(stages=(1, 3, None), each=6, cautious=True)


def test_machines_begin_in_stages_and_each_measures_its_blocks(tmp_path: Path) -> None:
    machines = Machines(dict.fromkeys(names(6), 0.9))
    stop, record = carry_out(machines, ONE_FEW_ALL, tmp_path)
    counted = [name for name, block in machines.measured if block >= 1]
    assert Counter(counted) == dict.fromkeys(names(6), 6)
    assert set(counted[:6]) == {"lab0"}
    assert set(counted[6:18]) == {"lab1", "lab2"}
    assert (record.reached, record.machines, record.stopped) == (3, 6, "")
    assert stop.why == "decided"


def test_harm_on_the_first_machine_reaches_no_other_one(tmp_path: Path) -> None:
    machines = Machines(dict.fromkeys(names(6), 1.2))
    stop, record = carry_out(machines, ONE_FEW_ALL, tmp_path)
    assert {name for name, _ in machines.measured} == {"lab0"}
    assert (record.reached, record.machines) == (1, 1)
    assert stop.why == "decided"
    assert "worsens elapsed" in stop.words
    assert "stage 1 of 3" in stop.words


def test_harm_on_one_of_few_machines_reaches_no_more(tmp_path: Path) -> None:
    machines = Machines({**dict.fromkeys(names(8), 0.9), "lab2": 1.2})
    stop, record = carry_out(machines, FleetPlan(stages=(1, 3, None), each=9, cautious=True), tmp_path)
    assert {name for name, _ in machines.measured} == set(names(3))
    assert "worsens elapsed on lab2" in stop.words
    assert record.reached == 2


def test_without_a_canary_harm_stops_nothing(tmp_path: Path) -> None:
    machines = Machines(dict.fromkeys(names(4), 1.2))
    stop, _ = carry_out(machines, FleetPlan(each=6), tmp_path)
    assert Counter(name for name, block in machines.measured if block) == dict.fromkeys(names(4), 6)
    assert stop.why == "decided"


def test_a_broken_guard_stops_all_machines_at_once(tmp_path: Path) -> None:
    machines = Machines({"lab0": 0.9, "lab1": 0.9, "lab2": 3.0, "lab3": 0.9})
    plan = FleetPlan(stages=(1, 3, None), each=6, guards=(guard("elapsed < 2s", "<", 2.0),), cautious=True)
    stop, record = carry_out(machines, plan, tmp_path)
    assert machines.measured[-1][0] == "lab2"
    assert [name for name, _ in machines.measured].count("lab2") == 1
    assert stop.why == "decided"
    assert "guard elapsed < 2s is broken on lab2" in record.stopped


def test_a_guard_that_the_baseline_breaks_is_a_failure(tmp_path: Path) -> None:
    plan = FleetPlan(each=6, guards=(guard("elapsed < 0.5s", "<", 0.5),))
    stop, _ = carry_out(Machines(dict.fromkeys(names(2), 0.1), noise=0), plan, tmp_path)
    assert stop.why == "failed"


def test_a_guard_beside_the_baseline_needs_three_of_its_trials_on_the_machine(tmp_path: Path) -> None:
    machines = Machines({"lab0": 1.3})
    plan = FleetPlan(each=6, guards=(guard("elapsed not worse than 10%", None, 0.1),))
    stop, _ = carry_out(machines, plan, tmp_path)
    assert 3 <= len(machines.measured) <= 5
    assert "under the baseline" in stop.words


def test_a_machine_that_leaves_is_not_waited_for(tmp_path: Path) -> None:
    class Leaving(Machines):
        def done(self, request: TrialRequest, machine: str) -> TrialDone:
            completed = super().done(request, machine)
            if len(self.measured) > 8:
                self.effects.pop("lab1", None)
            return completed

    machines = Leaving(dict.fromkeys(names(3), 0.9))
    stop, _ = carry_out(machines, FleetPlan(each=6), tmp_path)
    counts = Counter(name for name, block in machines.measured if block)
    assert counts["lab0"] == counts["lab2"] == 6
    assert counts["lab1"] < 6
    assert stop.why == "decided"


@pytest.mark.parametrize(("machines", "least"), [(1, 6), (2, 7), (20, 11)])
def test_by_default_each_measures_as_many_blocks_as_its_own_verdict_needs(
    tmp_path: Path, machines: int, least: int
) -> None:
    played = Machines(dict.fromkeys(names(machines), 0.9))
    _, record = carry_out(played, FleetPlan(), tmp_path)
    assert record.each == least

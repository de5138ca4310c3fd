"""Storage of recorded trials, whatever the machine says; the target is played."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.executor.executor import Depth
from ajuste.model.cost import CostFunction, CostPart, Costs, NamedCosts
from ajuste.model.decision import Decisions, NamedDecisions
from ajuste.model.error import RequestError
from ajuste.model.event import Event, Hello, Traced
from ajuste.model.explanation import Recorded
from ajuste.model.modelled import ModelledMachine
from ajuste.model.plan import Plan
from ajuste.model.scheduling import Behaviour, Recording, Spread, Switches
from ajuste.model.trial import Observation, Trial
from ajuste.run.runner import Executors
from ajuste.store.store import Run, Store
from ajuste_guest.recordings import (
    NEEDS_ROOT,
    ToRecord,
    follow_decisions,
    record_trials,
    require_followable,
    to_follow,
    to_record,
)
from decisions import stream
from played import PlayedExecutor, agent_events
from shell import SMALL
from small_stores import run_of, small_trials

HERE = """\
schema = 1
name = "here"
target = { kind = "host" }
workload = { command = ["true"] }
[[factor]]
name = "nice"
levels = [0, 5]
[analysis]
metrics = ["elapsed"]
"""
BASELINE, OTHER = "sched_min_granularity_ns=750000", "sched_min_granularity_ns=75000000"


class Played(PlayedExecutor):
    """Says of every plan what ``answer`` is."""

    def __init__(self, answer: Traced | str) -> None:
        super().__init__()
        self._answer = answer

    @property
    def hello(self) -> Hello:
        figures = {"at_ns": 0, "version": 1, "cpus": 1, "memory_bytes": 1}
        return Hello.model_validate(
            figures | {"agent": "", "kernel": "5.10", "build": "", "machine": "", "guest": True}
        )

    def run(self, plan: Plan) -> Observation:
        self.plans.append(plan)
        if isinstance(self._answer, str):
            return Observation(problem=self._answer)
        events: tuple[Event, ...] = (*agent_events(plan, 5, 0), self._answer)
        return Observation(events=events)


@pytest.fixture
def run(store: Store, tmp_path: Path) -> Run:
    return run_of(SMALL, store, tmp_path)


def recorded(run: Run, store: Store, answer: Traced | str) -> tuple[Played, dict[str, Recorded]]:
    target = Played(answer)
    with Executors(lambda _: target, lambda *_: None) as targets:
        record_trials(run, to_record(run, OTHER, store), store, targets, lambda _: None)
    return target, store.recorded(run)


def test_a_recorded_trial_is_none_of_the_run(run: Run, store: Store) -> None:
    target, _ = recorded(run, store, Traced(at_ns=1, not_supported="no tracefs"))
    assert [plan.trace is not None for plan in target.plans] == [True, True]
    assert [plan.writes[0].value for plan in target.plans] == ["750000", "75000000"]
    assert target.plans[0].perturbation == target.plans[1].perturbation
    assert store.trials(run) == []


def test_the_typical_block_is_recorded_and_followed(run: Run, store: Store) -> None:
    """The third block is the nearest to the effect; the first is far from it."""
    switches = [(100, 90), (100, 10), (100, 11)]
    store.add_trials(run, [trial for number, both in enumerate(switches) for trial in pair(number, *both)])
    wanted = to_record(run, OTHER, store)
    assert wanted.block == 2
    target = Following()
    recordings = followed(run, store, target)
    assert {recording.block for recording in recordings.values()} == {wanted.block}
    assert {plan.perturbation for plan, _ in target.counted} == {target.plans[0].perturbation}
    first = recordings[BASELINE].model_copy(update={"block": 0})
    store.keep_recorded(run, first)
    assert BASELINE in to_record(run, OTHER, store).names


def pair(number: int, baseline: int, other: int) -> list[Trial]:
    """Return the trials of a block by their switches."""
    trials = small_trials(number)
    figures = {BASELINE: baseline, OTHER: other}
    return [
        trial.model_copy(
            update={"metrics": trial.metrics | {"involuntary-switches": float(figures[trial.slot.configuration])}}
        )
        for trial in trials
    ]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Traced(at_ns=1, not_supported="no tracefs"), "no tracefs"),
        (Traced(at_ns=1), "the agent gave no reason"),
        ("the guest hung", "the guest hung"),
    ],
)
def test_why_there_is_no_recording_is_kept_and_it_is_tried_again(
    run: Run, store: Store, answer: Traced | str, problem: str
) -> None:
    _, recordings = recorded(run, store, answer)
    assert {name: recording.problem for name, recording in recordings.items()} == {BASELINE: problem, OTHER: problem}
    assert to_record(run, OTHER, store).names == (BASELINE, OTHER)


def test_without_root_nothing_of_this_machine_is_carried_out_to_be_recorded(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    here = run_of(HERE, store, tmp_path)
    target = Played(Traced(at_ns=1))
    with Executors(lambda _: target, lambda *_: None) as targets:
        record_trials(here, ToRecord(("nice=0", "nice=5"), 0), store, targets, lambda _: None)
    assert target.plans == []
    assert {recording.problem for recording in store.recorded(here).values()} == {NEEDS_ROOT}


class Counting(Played):
    """Counts too, or says why not."""

    def __init__(self, answer: Traced | str, costs: NamedCosts | str) -> None:
        super().__init__(answer)
        self._costs = costs
        self.counted: list[tuple[Plan, str]] = []

    def count(self, plan: Plan, depth: Depth, machine: ModelledMachine | None = None) -> Observation:
        self.counted.append((plan, depth))
        if self._costs == "":
            return super().count(plan, depth, machine)
        return Observation(problem=self._costs) if isinstance(self._costs, str) else Observation(costs=NOTHING)

    def named(self, costs: Costs) -> NamedCosts:
        assert costs == NOTHING
        assert isinstance(self._costs, NamedCosts)
        return self._costs


NOTHING = Costs(version=1, depth="functions", user=0, kernel=0, faulted=0, tasks=())
TOLD = NamedCosts(
    faulted=0,
    functions=(CostFunction(name="schedule", file="", space="kernel"),),
    parts=(
        CostPart(
            role="workload",
            tasks=1,
            user=0,
            kernel=7,
            loads=0,
            stores=0,
            branches=0,
            switches_in=1,
            parents=(-1,),
            functions=(0,),
            kinds=(0,),
            calls=(2,),
            instructions=(7,),
        ),
    ),
)


def counted(run: Run, store: Store, costs: NamedCosts | str) -> tuple[Counting, dict[str, Recorded]]:
    target = Counting(Traced(at_ns=1, not_supported="no tracefs"), costs)
    with Executors(lambda _: target, lambda *_: None) as targets:
        record_trials(run, to_record(run, OTHER, store), store, targets, lambda _: None)
    return target, store.recorded(run)


def test_costs_are_of_the_same_trial_without_a_trace(run: Run, store: Store) -> None:
    target, recordings = counted(run, store, TOLD)
    assert [plan.trace for plan, _ in target.counted] == [None, None]
    same = [(plan.model_copy(update={"trace": None}), "functions") for plan in target.plans]
    assert target.counted == same
    assert {name: recording.costs for name, recording in recordings.items()} == {BASELINE: TOLD, OTHER: TOLD}
    assert store.trials(run) == []


@pytest.mark.parametrize(
    ("costs", "problem"),
    [("the lens ended early", "the lens ended early"), ("", "only in guests of this machine under the virtual clock")],
)
def test_why_costs_could_not_be_counted_is_kept(run: Run, store: Store, costs: str, problem: str) -> None:
    _, recordings = counted(run, store, costs)
    assert [recording.costs for recording in recordings.values()] == [None, None]
    assert all(recording.costs_problem.endswith(problem) for recording in recordings.values())


def test_what_was_recorded_without_costs_is_recorded_again_where_they_can_be_told(run: Run, store: Store) -> None:
    behaviour = Behaviour.model_validate(
        dict.fromkeys(("tasks", "wakeups", "migrations", "run_ns", "wait_ns"), 0)
        | {"switches": dict.fromkeys(Switches.model_fields, 0)}
        | {name: dict.fromkeys(Spread.model_fields, 0) | {"histogram": ()} for name in ("latency", "runs")}
    )
    recording = Recording.model_validate(
        dict.fromkeys(("span_ns", "covered_ns", "events", "lost", "buffer_bytes", "cpus", "idle_ns"), 0)
        | {"workload": behaviour, "background": behaviour, "queue": (), "shares": (), "preemptions": ()}
    )
    whole = Recorded(configuration=BASELINE, block=0, seed=1, recording=recording)
    store.keep_recorded(run, whole)
    assert to_record(run, OTHER, store).names == (BASELINE, OTHER)
    store.keep_recorded(run, whole.model_copy(update={"costs": TOLD}))
    store.keep_recorded(run, whole.model_copy(update={"configuration": OTHER, "costs_problem": "no QEMU"}))
    assert to_record(run, OTHER, store).names == ()
    assert to_record(run, OTHER, store, fresh=True).names == (BASELINE, OTHER)


STEPS = [("wakeup", 2), ("switch", 2)]
TAKEN = stream(STEPS)
SEEN = Decisions.model_validate(TAKEN.model_dump(exclude={"functions", "instruction_ns"}) | {"version": 1})


class Following(Counting):
    """Follows decisions too, or says why not."""

    def __init__(self, problem: str = "") -> None:
        super().__init__(Traced(at_ns=1, not_supported="no tracefs"), TOLD)
        self._problem = problem

    def count(self, plan: Plan, depth: Depth, machine: ModelledMachine | None = None) -> Observation:
        if depth != "decisions":
            return super().count(plan, depth, machine)
        self.counted.append((plan, depth))
        return Observation(problem=self._problem) if self._problem else Observation(costs=NOTHING, decisions=SEEN)

    def named_decisions(self, costs: Costs, decisions: Decisions) -> NamedDecisions:
        assert (costs, decisions) == (NOTHING, SEEN)
        return TAKEN


def followed(run: Run, store: Store, target: Following) -> dict[str, Recorded]:
    with Executors(lambda _: target, lambda *_: None) as targets:
        record_trials(run, to_record(run, OTHER, store), store, targets, lambda _: None)
        follow_decisions(run, to_follow(run, OTHER, store), store, targets, lambda _: None)
    return store.recorded(run)


def test_decisions_are_of_the_same_trial_and_kept(run: Run, store: Store) -> None:
    target = Following()
    assert to_follow(run, OTHER, store) == (BASELINE, OTHER)
    recordings = followed(run, store, target)
    assert {name: recording.decisions for name, recording in recordings.items()} == {BASELINE: TAKEN, OTHER: TAKEN}
    assert [recording.costs for recording in recordings.values()] == [TOLD, TOLD]
    assert [plan for plan, depth in target.counted if depth == "decisions"] == [
        plan for plan, depth in target.counted if depth == "functions"
    ]
    assert to_follow(run, OTHER, store) == ()
    assert to_follow(run, OTHER, store, fresh=True) == (BASELINE, OTHER)
    store.keep_recorded(run, recordings[OTHER].model_copy(update={"seed": 99}))
    assert to_follow(run, OTHER, store) == (BASELINE, OTHER)


def test_why_decisions_could_not_be_followed_is_kept(run: Run, store: Store) -> None:
    recordings = followed(run, store, Following("the guest hung"))
    assert [(recording.decisions, recording.decisions_problem) for recording in recordings.values()] == [
        (None, "the guest hung")
    ] * 2
    assert to_follow(run, OTHER, store) == (BASELINE, OTHER)


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("[target]", '[target]\nclock = "wall"', "a guest with the wall clock never decides the same twice"),
        ("750000, 75000000", "750000", "the run has one configuration, sched_min_granularity_ns=750000"),
        (
            '[target]\nkernel = "debian:5.10"\ninstruction_ns = 8',
            '[target]\nkind = "host"\nclock = "wall"',
            "this machine",
        ),
    ],
)
def test_only_what_decides_the_same_twice_can_be_followed(
    store: Store, tmp_path: Path, before: str, after: str, problem: str
) -> None:
    assert before in SMALL
    with pytest.raises(RequestError, match=problem):
        require_followable(run_of(SMALL.replace(before, after), store, tmp_path))


@pytest.mark.parametrize("cpus", [1, 3])
def test_what_decides_the_same_twice_can_be_followed(store: Store, tmp_path: Path, cpus: int) -> None:
    require_followable(run_of(SMALL.replace("[target]", f"[target]\ncpus = {cpus}"), store, tmp_path))

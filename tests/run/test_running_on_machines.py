"""The runner with machines that measure whole blocks, which the test plays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.design.stopping import Pace, Stop, StoppingLimits, on_each
from ajuste.executor.executor import OnStart, TrialDone, TrialRequest, now
from ajuste.kernel.spec import parse_spec
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from ajuste.model.verdict import MACHINES
from ajuste.run.outcome import results_of
from ajuste.run.runner import Executors, Runner
from ajuste.store.store import Run, Store
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy
from played import Notes, PlayedExecutor, agent_events
from shell import small

Switches = Callable[[str, Plan], int]
"""Number of switches by machine and plan."""


class Labs(PlayedExecutor):
    """Two machines that take turns. ``spoilt`` plans fail; ``gone`` machines have nothing any more after that."""

    parallel = 2

    def __init__(self, study: ResolvedStudy, switches: Switches, spoilt: Sequence[str] = ()) -> None:
        super().__init__()
        self.study, self.switches, self.spoilt = study, switches, spoilt
        self.names = ["lab1", "lab2"]
        self.calls: list[list[int]] = []
        self.where: dict[str, str] = {}

    def more_blocks(self, pace: Pace, limits: StoppingLimits) -> int:
        return on_each(self.parallel, pace, limits)

    def carry_out(self, requests: Sequence[TrialRequest], on_start: OnStart) -> Iterator[list[TrialDone]]:
        blocks = {
            number: list(block_requests)
            for number, block_requests in groupby(requests, lambda request: request.slot.block)
        }
        self.calls.append(list(blocks))
        for number, block_requests in blocks.items():
            name = block_requests[0].machine or self.names[number % len(self.names)]
            if name in self.names:
                plans = [request.plan() for request in block_requests]
                self.where |= {plan.id: name for plan in plans}
                yield [
                    TrialDone(request, plan, now(), self._observed(name, plan), machine=name)
                    for request, plan in zip(block_requests, plans, strict=True)
                ]

    def _observed(self, name: str, plan: Plan) -> Observation:
        if plan.id in self.spoilt:
            return Observation(problem="the agent ended early")
        events = tuple(agent_events(plan, self.switches(name, plan)))
        return Observation(lines="\n".join(e.model_dump_json() for e in events), events=events, host_seconds=1.5)


@pytest.fixture
def study(tmp_path: Path) -> ResolvedStudy:
    path = tmp_path / "small.toml"
    path.write_text(small(3, 40).replace("instruction_ns = 8", 'clock = "wall"'))
    read = read_study(path, catalogue(), parse_kernel=parse_spec)
    return resolve(read, catalogue(), {"debian:5.10": KernelVersion(major=5, minor=10)}, lambda name: f"/bin/{name}")


def begin(study: ResolvedStudy, store: Store) -> Run:
    document = study.model_dump_json()
    return store.new_run(
        study="small", fingerprint="f", seed=1, ajuste="0", named="small", resolved=document, environment={}
    )


def carry_out(study: ResolvedStudy, run: Run, store: Store, target: Labs) -> Stop:
    with Executors(lambda _: target, lambda *_: None) as targets:
        return Runner(study, run, store, targets, Notes()).carry_out()


def noise(plan: Plan) -> int:
    return plan.perturbation.start_delay_ns % 3


def fewer(_: str, plan: Plan) -> int:
    """Return the switches of a plan, alike on all machines: the larger value makes a tenth of them."""
    return (1000 if plan.writes[0].value == "750000" else 100) + noise(plan)


def test_every_block_is_asked_for_once_and_its_machine_kept(study: ResolvedStudy, store: Store) -> None:
    target, run = Labs(study, fewer), begin(study, store)
    assert carry_out(study, run, store, target).why == "decided"
    blocks = [number for call in target.calls for number in call]
    assert blocks == sorted(set(blocks))
    assert store.machines(run) == {number: f"lab{number % 2 + 1}" for number in blocks}
    assert len(store.trials(run)) == 2 * len(blocks)


def test_after_the_first_block_every_machine_has_one(study: ResolvedStudy, store: Store) -> None:
    target = Labs(study, fewer)
    carry_out(study, begin(study, store), store, target)
    assert [len(call) for call in target.calls][:2] == [1, 2]


def test_what_is_repeated_is_repeated_where_its_block_is(study: ResolvedStudy, store: Store) -> None:
    target, run = Labs(study, fewer, spoilt=["b1p0a0", "b2p1a0"]), begin(study, store)
    carry_out(study, run, store, target)
    assert (target.where["b1p0a1"], target.where["b2p1a1"]) == ("lab2", "lab1")
    assert [trial.status for trial in store.trials(run) if trial.attempt == 1] == ["ok", "ok"]


def test_what_would_have_to_be_repeated_on_a_machine_that_is_gone_is_left_out(
    study: ResolvedStudy, store: Store
) -> None:
    class Leaving(Labs):
        def carry_out(self, requests: Sequence[TrialRequest], on_start: OnStart) -> Iterator[list[TrialDone]]:
            yield from super().carry_out(requests, on_start)
            if "b1p0a0" in self.where:
                self.names = ["lab1"]

    target, run = Leaving(study, fewer, spoilt=["b1p0a0"]), begin(study, store)
    assert carry_out(study, run, store, target).why == "decided"
    assert "b1p0a1" not in target.where
    results = results_of(store.find_run(run.id), store)
    assert results.tally.failed == 1
    assert results.verdicts[0].blocks == results.blocks == len(store.machines(run)) - 1


def test_a_study_ends_when_its_machines_certainly_disagree_and_says_so(study: ResolvedStudy, store: Store) -> None:
    def opposite(machine: str, plan: Plan) -> int:
        larger = plan.writes[0].value == "75000000"
        return (100 if larger == (machine == "lab1") else 1000) + noise(plan)

    run = begin(study, store)
    stopped = carry_out(study, run, store, Labs(study, opposite))
    assert stopped.why == "decided"
    results = results_of(store.find_run(run.id), store)
    assert results.verdicts[0].verdict == "undecided"
    assert results.verdicts[0].depends_on_machine
    assert "it depends on the machine" in results.answer
    assert [machine.machine for machine in MACHINES.of(results)[0].machines] == ["lab1", "lab2"]


def test_a_run_goes_on_with_the_machines_that_its_blocks_have(study: ResolvedStudy, store: Store) -> None:
    run = begin(study, store)
    target = Labs(study, fewer, spoilt=["b0p0a0", "b0p1a1"])
    with pytest.raises(ZeroDivisionError):
        carry_out(study, run, store, Breaking(study, fewer, spoilt=target.spoilt))
    assert store.machines(run) == {0: "lab1"}
    target.names = ["lab2", "lab1"]
    carry_out(study, run, store, target)
    assert target.where["b0p0a1"] == "lab1"


class Breaking(Labs):
    """Falls down after its first block."""

    def carry_out(self, requests: Sequence[TrialRequest], on_start: OnStart) -> Iterator[list[TrialDone]]:
        if self.calls:
            raise ZeroDivisionError
        yield from super().carry_out(requests, on_start)


class Order(Notes):
    """Remembers what ended, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[tuple[str, int]] = []

    def trial_done(self, configuration: str, block: int, status: str, seconds: float) -> None:
        self.ended.append(("trial", block))

    def block_done(self, block: int, findings: object) -> None:
        self.ended.append(("block", block))


def test_blocks_that_are_measured_together_are_counted_as_each_ends(study: ResolvedStudy, store: Store) -> None:
    target, watcher = Labs(study, fewer), Order()
    with Executors(lambda _: target, lambda *_: None) as targets:
        Runner(study, begin(study, store), store, targets, watcher).carry_out()
    assert max(map(len, target.calls)) > 1
    for block in {number for _, number in watcher.ended}:
        place = watcher.ended.index(("block", block))
        assert ("trial", block) not in watcher.ended[place:]
        assert ("trial", block + 1) not in watcher.ended[:place]

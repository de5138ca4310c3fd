"""The side that asks machines for whole blocks, with workers that are threads of this process and only played."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from distributed import LocalCluster, get_worker

from ajuste.catalogue.loader import catalogue
from ajuste.home import home
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Accepted, End
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Plan
from ajuste.study.read import parse_study
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste.target.cluster.benches import BenchTarget, Work
from ajuste.target.cluster.connection import BENCH, Cluster, Connection, quieten
from ajuste.target.cluster.parcel import HostParcel
from ajuste.target.target import Block, BlockDone

PARCEL = HostParcel(ajuste="1", agent="0" * 64, study="", directory="/")
PLAYED: dict[int, Played] = {}


def resolved() -> ResolvedStudy:
    tables = {"target": {"kind": "host"}, "analysis": {"metrics": ["elapsed"]}, "factor": []}
    study = parse_study({"name": "one", "workload": {"command": ["true"]}, **tables})
    return resolve(study, catalogue(), {HOST_KERNEL: KernelVersion(major=6, minor=1)}, lambda name: f"/bin/{name}")


class Played:
    """Machines that do what they are told. What Dask takes along is the very same, and no copy."""

    def __init__(self) -> None:
        PLAYED[id(self)] = self
        self.lock = threading.Lock()
        self.at_work: set[str] = set()
        self.carried_out: list[tuple[str, list[str]]] = []
        self.closed = 0

    def __reduce__(self) -> tuple[Callable[[int], Played], tuple[int]]:
        return found, (id(self),)

    def survey(self, parcel: str, dask_worker: Any = None) -> dict[str, Any]:
        name = f"lab{dask_worker.name}"
        return {
            "where": name,
            "identity": self.identity(name),
            "resolved": resolved().model_dump_json(),
            "machine": {"kernel": "6.1"},
        }

    def identity(self, name: str) -> str:
        return name

    def carry_out(self, parcel: str, plans: Sequence[str]) -> dict[str, Any]:
        name = f"lab{get_worker().name}"
        ids = [Plan.model_validate_json(plan).id for plan in plans]
        with self.lock:
            assert name not in self.at_work, "one block at a time"
            self.at_work.add(name)
            self.carried_out.append((name, ids))
        said = self.answer(name, ids)
        with self.lock:
            self.at_work.remove(name)
        return {"where": name, **said}

    def answer(self, name: str, ids: Sequence[str]) -> dict[str, Any]:
        return {"done": [{"lines": said(own), "problem": "", "host_seconds": 0.5} for own in ids]}

    def close(self) -> None:
        self.closed += 1


class Busy(Played):
    """On one machine another experiment goes on."""

    def answer(self, name: str, ids: Sequence[str]) -> dict[str, Any]:
        if name == "lab1":
            return {"error": "another experiment goes on on this machine", "hint": "wait for it", "wrong": True}
        return super().answer(name, ids)


class Broken(Played):
    def answer(self, name: str, ids: Sequence[str]) -> dict[str, Any]:
        return {"error": "a value could not be put back", "hint": "`ajuste restore` tries again", "wrong": False}


class Twins(Played):
    """Two workers of one machine."""

    def identity(self, name: str) -> str:
        return "the same"


class Others(Played):
    def survey(self, parcel: str, dask_worker: Any = None) -> dict[str, Any]:
        return {"where": "lab", "refusal": "vm.swappiness cannot be changed on this machine: needs root"}


def found(number: int) -> Played:
    return PLAYED[number]


def said(plan: str) -> str:
    events = (Accepted(at_ns=1, id=plan), End(at_ns=2, id=plan, ok=True, events=1))
    return "".join(f"{event.model_dump_json()}\n" for event in events)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Of two machines."""
    quieten()
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", resources={BENCH: 1}
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def connection(scheduler: str) -> Iterator[Connection]:
    with Connection(Cluster(scheduler), home(), lambda _: None) as opened:
        yield opened


def target(connection: Connection, played: Played) -> BenchTarget:
    return BenchTarget(connection, PARCEL, resolved(), work=Work(played.survey, played.carry_out, played.close))


def blocks(count: int, where: str = "") -> list[Block]:
    def plans_of(number: int) -> Callable[[ResolvedStudy], tuple[Plan, ...]]:
        return lambda _: (Plan(id=f"b{number}p0"), Plan(id=f"b{number}p1"))

    return [Block(number, plans_of(number), where) for number in range(count)]


def carry_out(connection: Connection, played: Played, asked: list[Block]) -> list[BlockDone]:
    with target(connection, played) as entered:
        return list(entered.run_blocks(asked))


def test_every_block_is_carried_out_once_and_whole(connection: Connection) -> None:
    played = Played()
    done = carry_out(connection, played, blocks(20))
    assert sorted(one.number for one in done) == list(range(20))
    by_machine = {(name, *ids) for name, ids in played.carried_out}
    assert by_machine == {(one.where, f"b{one.number}p0", f"b{one.number}p1") for one in done}
    assert {one.where for one in done} == {"lab0", "lab1"}
    assert all(observation.problem == "" for one in done for _, observation in one.observed)
    assert played.closed == 2


def test_a_block_goes_back_to_the_machine_that_has_it(connection: Connection) -> None:
    done = carry_out(connection, Played(), blocks(4, "lab1"))
    assert [one.where for one in done] == ["lab1"] * 4


def test_a_block_of_a_machine_that_is_not_there_is_left_out(connection: Connection) -> None:
    done = carry_out(connection, Played(), [*blocks(1, "gone"), *blocks(3)[1:]])
    assert sorted(one.number for one in done) == [1, 2]


def test_a_machine_that_is_busy_is_left_out_and_its_block_measured_elsewhere(connection: Connection) -> None:
    done = carry_out(connection, Busy(), blocks(6))
    assert sorted((one.number, one.where) for one in done) == [(number, "lab0") for number in range(6)]


def test_two_workers_of_one_machine_are_one(connection: Connection) -> None:
    with target(connection, Twins()) as entered:
        assert entered.parallel == 1
        assert len({one.where for one in entered.run_blocks(blocks(4))}) == 1


def test_what_a_machine_could_not_put_back_is_the_error_of_the_run(connection: Connection) -> None:
    with target(connection, Broken()) as entered, pytest.raises(RunError, match=r"put back \(on lab[01]\)") as raised:
        list(entered.run_blocks(blocks(3)))
    assert raised.value.hint == "`ajuste restore` tries again"


def test_machines_that_cannot_measure_it_are_named_with_the_reason(connection: Connection) -> None:
    with pytest.raises(RequestError, match=r"no machine .*\(lab\): vm.swappiness cannot be changed on this machine"):
        carry_out(connection, Others(), blocks(1))


def test_workers_that_were_not_offered_for_it_do_not_measure() -> None:
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Connection(Cluster(cluster.scheduler_address), home(), lambda _: None) as opened,
        pytest.raises(RequestError, match="has no worker that measures") as raised,
    ):
        carry_out(opened, Played(), blocks(1))
    assert "ajuste worker --bench --scheduler" in str(raised.value.hint)

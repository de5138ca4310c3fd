"""The side that asks machines for whole blocks, with workers that are threads of this process and only played."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.executor.cluster.answer import Answer, Said, WorkRequest
from ajuste.executor.cluster.benches import BenchExecutor
from ajuste.executor.cluster.connection import Connection
from ajuste.executor.cluster.job import HostJob
from ajuste.executor.cluster.wire import What
from ajuste.executor.executor import Block, BlockDone
from ajuste.machine.inventory.inventory import take_inventory
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Accepted, End
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Plan
from ajuste.study.read import parse_study
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import ResolvedStudy
from clusters import Lab, lab

PARCEL = HostJob(ajuste="1", agent="0" * 64, study="", directory="/")


def resolved() -> ResolvedStudy:
    tables = {"target": {"kind": "host"}, "analysis": {"metrics": ["elapsed"]}, "factor": []}
    study = parse_study({"name": "one", "workload": {"command": ["true"]}, **tables})
    return resolve(study, catalogue(), {HOST_KERNEL: KernelVersion(major=6, minor=1)}, lambda name: f"/bin/{name}")


@cache
def inventory() -> str:
    return take_inventory().model_dump_json()


class Played:
    """Machines that do what they are told; ``at`` is one of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.at_work: set[str] = set()
        self.carried_out: list[tuple[str, list[str]]] = []
        self.closed = 0

    def at(self, name: str) -> Machine:
        return Machine(self, name)

    def survey(self, name: str) -> dict[str, Any]:
        return {
            "identity": self.identity(name),
            "resolved": resolved().model_dump_json(),
            "inventory": inventory(),
        }

    def identity(self, name: str) -> str:
        return name

    def carry_out(self, name: str, plans: Sequence[Plan]) -> dict[str, Any]:
        ids = [plan.id for plan in plans]
        with self.lock:
            assert name not in self.at_work, "one block at a time"
            self.at_work.add(name)
            self.carried_out.append((name, ids))
        said = self.answer(name, ids)
        with self.lock:
            self.at_work.remove(name)
        return said

    def answer(self, name: str, ids: Sequence[str]) -> dict[str, Any]:
        return {"done": [Said(lines=said(own), host_seconds=0.5) for own in ids]}


class Machine:
    def __init__(self, played: Played, name: str) -> None:
        self.played, self.name = played, name

    def do(self, what: What, body: bytes, coordinator: int = 0) -> Answer:
        asked = WorkRequest.model_validate_json(body)
        match what:
            case "bench-survey":
                return Answer(where=self.name, **self.played.survey(self.name))
            case "bench-carry-out":
                return Answer(where=self.name, **self.played.carry_out(self.name, asked.plans))
            case _:
                self.played.closed += 1
                return Answer(where=self.name)

    def forget(self, coordinator: int) -> None: ...


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
    def survey(self, name: str) -> dict[str, Any]:
        return {"refusal": "vm.swappiness cannot be changed on this machine: needs root"}


def said(plan: str) -> str:
    events = (Accepted(at_ns=1, id=plan), End(at_ns=2, id=plan, ok=True, events=1))
    return "".join(f"{event.model_dump_json()}\n" for event in events)


@pytest.fixture
def place() -> Iterator[Lab]:
    with lab() as opened:
        yield opened


def target(place: Lab, connection: Connection, played: Played) -> BenchExecutor:
    """Of two machines."""
    for name in ("lab0", "lab1"):
        place.worker(played.at(name), benches=True)
    return BenchExecutor(connection, PARCEL, resolved())


@pytest.fixture
def connection(place: Lab) -> Iterator[Connection]:
    with place.connection as opened:
        yield opened


def blocks(count: int, where: str = "") -> list[Block]:
    def plans_of(number: int) -> Callable[[ResolvedStudy], tuple[Plan, ...]]:
        return lambda _: (Plan(id=f"b{number}p0"), Plan(id=f"b{number}p1"))

    return [Block(number, plans_of(number), where) for number in range(count)]


def carry_out(place: Lab, connection: Connection, played: Played, asked: list[Block]) -> list[BlockDone]:
    with target(place, connection, played) as entered:
        return list(entered.run_blocks(asked))


def test_every_block_is_carried_out_once_and_whole(place: Lab, connection: Connection) -> None:
    played = Played()
    done = carry_out(place, connection, played, blocks(20))
    assert sorted(one.number for one in done) == list(range(20))
    by_machine = {(name, *ids) for name, ids in played.carried_out}
    assert by_machine == {(one.where, f"b{one.number}p0", f"b{one.number}p1") for one in done}
    assert {one.where for one in done} == {"lab0", "lab1"}
    assert all(observation.problem == "" for one in done for _, observation in one.observed)
    assert played.closed == 2


def test_a_block_goes_back_to_the_machine_that_has_it(place: Lab, connection: Connection) -> None:
    done = carry_out(place, connection, Played(), blocks(4, "lab1"))
    assert [one.where for one in done] == ["lab1"] * 4


def test_a_block_of_a_machine_that_is_not_there_is_left_out(place: Lab, connection: Connection) -> None:
    done = carry_out(place, connection, Played(), [*blocks(1, "gone"), *blocks(3)[1:]])
    assert sorted(one.number for one in done) == [1, 2]


def test_a_machine_that_is_busy_is_left_out_and_others_measure_its_block(place: Lab, connection: Connection) -> None:
    done = carry_out(place, connection, Busy(), blocks(6))
    assert sorted((one.number, one.where) for one in done) == [(number, "lab0") for number in range(6)]


def test_two_workers_of_one_machine_are_one(place: Lab, connection: Connection) -> None:
    with target(place, connection, Twins()) as entered:
        assert entered.parallel == 1
        assert len({one.where for one in entered.run_blocks(blocks(4))}) == 1


def test_what_a_machine_could_not_put_back_is_the_error_of_the_run(place: Lab, connection: Connection) -> None:
    with (
        target(place, connection, Broken()) as entered,
        pytest.raises(RunError, match=r"put back \(on lab[01]\)") as raised,
    ):
        list(entered.run_blocks(blocks(3)))
    assert raised.value.hint == "`ajuste restore` tries again"


def test_machines_that_cannot_measure_it_are_named_with_the_reason(place: Lab, connection: Connection) -> None:
    with pytest.raises(RequestError, match=r"no machine .*\(lab[01]\): vm.swappiness cannot be changed"):
        carry_out(place, connection, Others(), blocks(1))


def test_a_machine_that_says_nonsense_of_itself_is_left_out(place: Lab, connection: Connection) -> None:
    class Garbled(Played):
        def survey(self, name: str) -> dict[str, Any]:
            return super().survey(name) | ({"inventory": '{"kernel": 7}'} if name == "lab1" else {})

    done = carry_out(place, connection, Garbled(), blocks(4))
    assert {one.where for one in done} == {"lab0"}
    assert "its inventory is malformed" in next(iter(connection.banned.values()))


def test_a_block_of_a_machine_that_is_lost_is_measured_whole_by_another(place: Lab, connection: Connection) -> None:
    class Dying(Played):
        def answer(self, name: str, ids: Sequence[str]) -> dict[str, Any]:
            if name == "lab1":
                place.cut(peers[1])
            return super().answer(name, ids)

    dying = Dying()
    peers = [place.worker(dying.at(name), benches=True) for name in ("lab0", "lab1")]
    with BenchExecutor(connection, PARCEL, resolved()) as entered:
        done = list(entered.run_blocks(blocks(6)))
    assert sorted((one.number, one.where) for one in done) == [(number, "lab0") for number in range(6)]


def test_workers_that_were_not_offered_for_it_do_not_measure(place: Lab, connection: Connection) -> None:
    place.worker(Played().at("lab0"))
    with (
        pytest.raises(RequestError, match="has no worker that measures") as raised,
        BenchExecutor(connection, PARCEL, resolved()),
    ):
        pass
    assert "ajuste worker --bench --scheduler" in str(raised.value.hint)

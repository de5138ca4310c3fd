"""The side that asks machines for whole blocks, with workers that are threads of this process and only played."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from ajuste.executor.executor import NOTES, TrialDone, TrialRequest
from ajuste.machine.inventory.inventory import take_inventory
from ajuste.model.error import RequestError, RunError
from ajuste.model.plan import Plan
from ajuste_fleet.cluster.connection import Connection
from ajuste_fleet.cluster.coordinator import BenchExecutor
from ajuste_fleet.cluster.messages import PLANS, Answer, Ask, HostJob, Transcript
from clusters import Lab, lab
from played import one_command, said_of, trials

JOB = HostJob(ajuste="1", agent="0" * 64, study="", directory="/")


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
            "resolved": one_command().model_dump_json(),
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
        answer = self.answer(name, ids)
        with self.lock:
            self.at_work.remove(name)
        return answer

    def answer(self, name: str, ids: Sequence[str]) -> dict[str, Any]:
        return {"done": [Transcript(lines=said_of(plan_id), host_seconds=0.5) for plan_id in ids]}


class Machine:
    def __init__(self, played: Played, name: str) -> None:
        self.played, self.name = played, name

    def answer(self, ask: Ask, job: str, body: bytes) -> Answer:
        match ask:
            case "bench-survey":
                return Answer(where=self.name, **self.played.survey(self.name))
            case "bench-carry-out":
                return Answer(where=self.name, **self.played.carry_out(self.name, PLANS.validate_json(body)))
            case "bench-close":
                self.played.closed += 1
        return Answer(where=self.name)


class Busy(Played):
    """Workers of which one machine has another experiment going on."""

    def answer(self, name: str, ids: Sequence[str]) -> dict[str, Any]:
        if name == "lab1":
            return {"error": "another experiment is running on this machine", "hint": "wait for it", "wrong": True}
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


@pytest.fixture
def place() -> Iterator[Lab]:
    with lab() as opened:
        yield opened


def target(place: Lab, connection: Connection, played: Played) -> BenchExecutor:
    """Return an executor of two machines."""
    for name in ("lab0", "lab1"):
        place.worker(played.at(name))
    return BenchExecutor(connection, JOB, one_command())


@pytest.fixture
def connection(place: Lab) -> Iterator[Connection]:
    with place.connection as opened:
        yield opened


def carried_out(requests: list[TrialRequest]) -> list[list[TrialDone]]:
    """The blocks as they come, each whole."""
    return list(requests[0].executor.carry_out(requests, lambda _: None))


def carry_out(
    place: Lab, connection: Connection, played: Played, count: int, machine: str = ""
) -> list[tuple[int, str]]:
    """Return which blocks were done, and by which machines."""
    with target(place, connection, played) as entered:
        return done_by(carried_out(trials(entered, count, each=2, machine=machine)))


def done_by(done: list[list[TrialDone]]) -> list[tuple[int, str]]:
    return sorted((block[0].request.slot.block, block[0].machine) for block in done)


def test_every_block_is_carried_out_once_and_whole(place: Lab, connection: Connection) -> None:
    played = Played()
    with target(place, connection, played) as entered:
        done = carried_out(trials(entered, 20, each=2))
    assert [number for number, _ in done_by(done)] == list(range(20))
    by_machine = {(name, *ids) for name, ids in played.carried_out}
    assert by_machine == {(name, f"b{number}p0a0", f"b{number}p1a0") for number, name in done_by(done)}
    assert {name for _, name in done_by(done)} == {"lab0", "lab1"}
    assert all(trial.observation.problem == "" for block in done for trial in block)
    assert played.closed == 2


def test_a_block_goes_back_to_the_machine_that_has_it(place: Lab, connection: Connection) -> None:
    done = carry_out(place, connection, Played(), 4, "lab1")
    assert done == [(number, "lab1") for number in range(4)]


def test_a_block_of_a_machine_that_is_not_there_is_left_out(place: Lab, connection: Connection) -> None:
    with target(place, connection, Played()) as entered:
        done = carried_out([*trials(entered, 1, each=2, machine="gone"), *trials(entered, 2, each=2, first=1)])
    assert [number for number, _ in done_by(done)] == [1, 2]


def test_a_machine_that_is_busy_is_left_out_and_others_measure_its_block(place: Lab, connection: Connection) -> None:
    with target(place, connection, Busy()) as entered:
        done = done_by(carried_out(trials(entered, 6, each=2)))
        assert "(lab1): another experiment is running" in entered.environment[NOTES]
    assert done == [(number, "lab0") for number in range(6)]


def test_two_workers_of_one_machine_are_one(place: Lab, connection: Connection) -> None:
    with target(place, connection, Twins()) as entered:
        assert entered.parallel == 1
        assert len({name for _, name in done_by(carried_out(trials(entered, 4, each=2)))}) == 1


def test_what_a_machine_could_not_put_back_is_the_error_of_the_run(place: Lab, connection: Connection) -> None:
    with (
        target(place, connection, Broken()) as entered,
        pytest.raises(RunError, match=r"put back \(on lab[01]\)") as raised,
    ):
        carried_out(trials(entered, 3, each=2))
    assert raised.value.hint == "`ajuste restore` tries again"


def test_machines_that_cannot_measure_it_are_named_with_the_reason(place: Lab, connection: Connection) -> None:
    with pytest.raises(RequestError, match=r"no machine .*\(lab[01]\): vm.swappiness cannot be changed"):
        carry_out(place, connection, Others(), 1)


def test_a_machine_that_says_nonsense_of_itself_is_left_out(place: Lab, connection: Connection) -> None:
    class Garbled(Played):
        def survey(self, name: str) -> dict[str, Any]:
            return super().survey(name) | ({"inventory": '{"kernel": 7}'} if name == "lab1" else {})

    done = carry_out(place, connection, Garbled(), 4)
    assert {name for _, name in done} == {"lab0"}


def test_a_block_of_a_machine_that_is_lost_is_measured_whole_by_another(place: Lab, connection: Connection) -> None:
    class Dying(Played):
        def answer(self, name: str, ids: Sequence[str]) -> dict[str, Any]:
            if name == "lab1":
                place.cut(peers[1])
            return super().answer(name, ids)

    dying = Dying()
    peers = [place.worker(dying.at(name)) for name in ("lab0", "lab1")]
    with BenchExecutor(connection, JOB, one_command()) as entered:
        done = done_by(carried_out(trials(entered, 6, each=2)))
        assert "lab1 was lost in block" in entered.environment[NOTES]
    assert done == [(number, "lab0") for number in range(6)]


def test_a_cluster_without_workers_is_named_with_the_command_that_starts_them(connection: Connection) -> None:
    with pytest.raises(RequestError, match="has no workers") as raised, BenchExecutor(connection, JOB, one_command()):
        pass
    assert "ajuste cluster worker --bench --scheduler" in str(raised.value.hint)


def test_a_block_that_was_cut_short_is_measured_again(place: Lab, connection: Connection) -> None:
    class Cutting(Played):
        def answer(self, name: str, ids: Sequence[str]) -> dict[str, Any]:
            return super().answer(name, ids) if len(self.carried_out) > 1 else {}

    done = carry_out(place, connection, Cutting(), 4)
    assert [number for number, _ in done] == [0, 1, 2, 3]

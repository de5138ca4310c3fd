"""The cluster's side that asks, with workers that are threads of this process and guests that are only played."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster

from ajuste.home import home
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Accepted, End, Hello
from ajuste.model.plan import Plan
from ajuste.target.cluster.connection import Cluster, Connection, quieten
from ajuste.target.cluster.packing import Packed
from ajuste.target.cluster.parcel import Parcel
from ajuste.target.cluster.target import ClusterTarget, Work
from ajuste.target.target import Batch

PARCEL = Parcel(
    ajuste="1",
    qemu="10.0.2",
    spec="debian:5.10",
    release="5.10.0",
    package="",
    kernel="0" * 64,
    initramfs="1" * 64,
    clock="virtual",
    cpus=1,
    memory_mib=256,
    seed=1,
    instruction_ns=2,
)
HELLO = Hello(at_ns=0, version=1, agent="0", kernel="5.10", build="", machine="", cpus=1, memory_bytes=1, guest=True)


PLAYED: dict[int, Played] = {}


class Played:
    """Workers that say what they were told to; what is ``sent`` to them they have. What Dask takes along is the very
    same, and no copy.
    """

    def __init__(self) -> None:
        PLAYED[id(self)] = self
        self.sent: dict[str, bytes] = {}
        self.closed = 0
        self.lost: set[str] = set()
        self.lock = threading.Lock()

    def __reduce__(self) -> tuple[Callable[[int], Played], tuple[int]]:
        return found, (id(self),)

    def survey(self, parcel: str) -> dict[str, Any]:
        needed = Parcel.model_validate_json(parcel).contents
        return {"where": "lab", "lacks": [digest for digest in needed if digest not in self.sent]}

    def receive(self, digest: str, content: bytes) -> dict[str, Any]:
        self.sent[digest] = content
        return {"where": "lab"}

    def open(self, parcel: str, _: str) -> dict[str, Any]:
        return {"where": "lab", "hello": HELLO.model_dump_json(), "environment": {"kernel": "5.10"}}

    def carry_out(self, parcel: str, plans: Sequence[str]) -> dict[str, Any]:
        ids = [Plan.model_validate_json(plan).id for plan in plans]
        with self.lock:
            if forgotten := self.lost.intersection(ids):
                self.lost -= forgotten
                self.sent.clear()
                return {"where": "lab", "lacks": list(PARCEL.contents)}
        return {"where": "lab", "done": [{"lines": said(own), "problem": "", "host_seconds": 0.5} for own in ids]}

    def close(self, parcel: str) -> None:
        self.closed += 1


def found(number: int) -> Played:
    return PLAYED[number]


def said(plan: str) -> str:
    events = (Accepted(at_ns=1, id=plan), End(at_ns=2, id=plan, ok=True, events=1))
    return "".join(f"{event.model_dump_json()}\n" for event in events)


class Refusing(Played):
    def survey(self, parcel: str) -> dict[str, Any]:
        return {"where": "lab7", "refusal": "it has QEMU 7.2.1 instead of 10.0.2"}


class Failing(Played):
    def carry_out(self, parcel: str, plans: Sequence[str]) -> dict[str, Any]:
        return {"where": "lab7", "error": "the disk is full", "hint": "free some space", "wrong": False}


class Hanging(Played):
    released = threading.Event()

    def carry_out(self, parcel: str, plans: Sequence[str]) -> dict[str, Any]:
        self.released.wait(60)
        return super().carry_out(parcel, plans)


def work(played: Played) -> Work:
    return Work(played.survey, played.receive, played.open, played.carry_out, played.close)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    quieten()
    with LocalCluster(n_workers=2, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0") as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def connection(scheduler: str) -> Iterator[Connection]:
    with Connection(Cluster(scheduler), home(), lambda _: None) as opened:
        yield opened


def pack(directory: Path) -> Packed:
    files = {"0" * 64: directory / "kernel", "1" * 64: directory / "initramfs"}
    for digest, path in files.items():
        path.write_text(f"content of {digest}")
    return Packed(PARCEL, files)


def batches(count: int) -> list[Batch]:
    return [Batch((Plan(id=f"b{number}"),)) for number in range(count)]


def test_every_plan_is_carried_out_once_and_comes_back_with_its_number(connection: Connection) -> None:
    with ClusterTarget(connection, pack, work=work(Played())) as target:
        assert target.parallel == 4
        assert target.environment == {"kernel": "5.10"}
        done = [one for some in target.run_spread(batches(100)) for one in some]
    assert sorted(one.number for one in done) == list(range(100))
    for one in done:
        ((_, observation),) = one.observed
        assert observation.problem == ""
        assert observation.events[0] == Accepted(at_ns=1, id=f"b{one.number}")


def test_no_more_plans_are_on_their_way_than_the_workers_have_use_for(connection: Connection) -> None:
    taken = 0

    def endless() -> Iterator[Batch]:
        nonlocal taken
        for taken in range(1, 10_000):
            yield Batch((Plan(id=f"b{taken}"),))

    with ClusterTarget(connection, pack, work=work(Played())) as target:
        done = 0
        for some in target.run_spread(endless()):
            done += len(some)
            assert taken - done <= 3 * target.parallel
            if done > 50:
                break


def test_workers_are_sent_what_they_lack_and_end_their_machines_in_the_end(connection: Connection) -> None:
    played = Played()
    with ClusterTarget(connection, pack, work=work(played)):
        assert played.sent == {digest * 64: f"content of {digest * 64}".encode() for digest in "01"}
    assert played.closed == 2


def test_a_worker_that_comes_later_is_sent_what_it_lacks_and_its_plan_is_carried_out(connection: Connection) -> None:
    played = Played()
    with ClusterTarget(connection, pack, work=work(played)) as target:
        played.lost = {"b3", "b7"}
        done = [one.number for some in target.run_spread(batches(10)) for one in some]
    assert sorted(done) == list(range(10))
    assert len(played.sent) == 2


def test_workers_that_do_not_fit_are_refused_with_the_reason(connection: Connection) -> None:
    with (
        pytest.raises(RequestError, match=r"no worker .* fits: .*\(lab7\): it has QEMU 7.2.1 instead of 10.0.2"),
        ClusterTarget(connection, pack, work=work(Refusing())),
    ):
        pass


def test_what_a_worker_cannot_do_is_the_error_of_the_run(connection: Connection) -> None:
    with ClusterTarget(connection, pack, work=work(Failing())) as target:
        with pytest.raises(RunError, match=r"the disk is full \(on lab7\)") as raised:
            list(target.run_spread(batches(3)))
        assert raised.value.hint == "free some space"


def test_leaving_ends_what_is_on_its_way(connection: Connection) -> None:
    with ClusterTarget(connection, pack, work=work(Hanging())) as target:
        waiting = threading.Thread(target=lambda: list(target.run_spread(batches(3))))
        waiting.start()
    waiting.join(30)
    Hanging.released.set()
    assert not waiting.is_alive()

"""The cluster's side that asks, with workers that are threads of this process and guests that are only played."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ajuste.executor.cluster.answer import Answer, Said, WorkRequest, from_here, piece_of
from ajuste.executor.cluster.checks import Checks
from ajuste.executor.cluster.cluster import ClusterExecutor
from ajuste.executor.cluster.connection import Connection
from ajuste.executor.cluster.wire import GuestJob, PackedGuest, What
from ajuste.executor.executor import LEFT_OUT, TrialDone, TrialRequest, Untrusted
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Accepted
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from clusters import HELLO, PARCEL, Lab, lab
from played import PlayedExecutor, said_of, trials


class Played:
    """Workers that say what they were told to; what is ``sent`` to them they have."""

    def __init__(self) -> None:
        self.sent: dict[str, bytes] = {}
        self.closed = 0
        self.lost: set[str] = set()
        self.lock = threading.Lock()
        self.carried_out: list[str] = []

    def do(self, what: What, body: bytes, coordinator: int = 0) -> Answer:
        if what == "receive":
            piece = piece_of(body)
            self.sent[piece.digest] = piece.content
            return from_here()
        asked = WorkRequest.model_validate_json(body)
        match what:
            case "survey":
                needed = GuestJob.model_validate_json(asked.parcel).contents
                return from_here(lacks=[digest for digest in needed if digest not in self.sent])
            case "open":
                return from_here(hello=HELLO, environment={"kernel": "5.10"})
            case "carry-out":
                return self.carry_out([plan.id for plan in asked.plans])
            case _:
                self.closed += 1
                return from_here()

    def forget(self, coordinator: int) -> None: ...

    def carry_out(self, ids: Sequence[str]) -> Answer:
        with self.lock:
            if forgotten := self.lost.intersection(ids):
                self.lost -= forgotten
                self.sent.clear()
                return from_here(lacks=PARCEL.contents)
            self.carried_out += ids
        return from_here(done=[self.said(own) for own in ids])

    def said(self, plan: str) -> Said:
        return Said(lines=said_of(plan), host_seconds=0.5)


class Refusing(Played):
    def do(self, what: What, body: bytes, coordinator: int = 0) -> Answer:
        return from_here(refusal="it has QEMU 7.2.1 instead of 10.0.2") if what == "survey" else super().do(what, body)


class Failing(Played):
    def carry_out(self, ids: Sequence[str]) -> Answer:
        return from_here(error="the disk is full", hint="free some space")


class Hanging(Played):
    def __init__(self) -> None:
        super().__init__()
        self.begun, self.released = threading.Event(), threading.Event()

    def carry_out(self, ids: Sequence[str]) -> Answer:
        self.begun.set()
        self.released.wait(30)
        return super().carry_out(ids)


class Lying(Played):
    """From its ``since``-th plan on it says that everything took longer."""

    def __init__(self, since: int = 0) -> None:
        super().__init__()
        self.since = since

    def said(self, plan: str) -> Said:
        return Said(lines=said_of(plan, at_ns=7)) if len(self.carried_out) > self.since else super().said(plan)


class Here(PlayedExecutor):
    """This machine, which tells the truth."""

    def run(self, plan: Plan) -> Observation:
        self.plans.append(plan)
        return Observation(lines=said_of(plan.id))


@pytest.fixture
def place() -> Iterator[Lab]:
    with lab() as opened:
        yield opened


@pytest.fixture
def played(place: Lab) -> Played:
    """Two workers with two threads each."""
    played = Played()
    for _ in range(2):
        place.worker(played, 2)
    return played


@pytest.fixture
def connection(place: Lab) -> Iterator[Connection]:
    with place.connection as opened:
        yield opened


def pack(directory: Path) -> PackedGuest:
    files = {hashlib.sha256(name.encode()).hexdigest(): directory / name for name in ("kernel", "initramfs")}
    for path in files.values():
        path.write_text(path.name)
    return PackedGuest(PARCEL, files)


def done_of(target: ClusterExecutor, requests: list[TrialRequest]) -> Iterator[TrialDone]:
    for some in target.carry_out(requests, lambda _: None):
        yield from some


def carry_out(target: ClusterExecutor, count: int) -> list[int]:
    return sorted(one.request.slot.block for one in done_of(target, trials(target, count)))


def until_disagreed(target: ClusterExecutor, count: int) -> tuple[set[str], tuple[str, ...]]:
    """Whose trials were kept until somebody was found out, and who that was."""
    kept: set[str] = set()
    try:
        for one in done_of(target, trials(target, count)):
            kept.add(one.by)
    except Untrusted as untrusted:
        return kept, untrusted.where
    raise AssertionError("nobody was found out")


def test_every_trial_is_carried_out_once_and_comes_back(played: Played, connection: Connection) -> None:
    with ClusterExecutor(connection, pack) as target:
        assert target.parallel == 4
        assert target.environment == {"kernel": "5.10"}
        done = list(done_of(target, trials(target, 100)))
    assert sorted(one.request.slot.block for one in done) == list(range(100))
    assert len(played.carried_out) == 100
    for one in done:
        assert one.observation.problem == ""
        assert one.observation.events[0] == Accepted(at_ns=1, id=one.plan.id)
        assert one.plan.id == f"b{one.request.slot.block}p0a0"


def test_trials_of_several_machines_are_carried_out_on_their_own(played: Played, connection: Connection) -> None:
    with ClusterExecutor(connection, pack) as one, ClusterExecutor(connection, pack) as other:
        requests = [*trials(one, 10), *trials(other, 10, first=10)]
        done = sorted(found.request.slot.block for found in done_of(one, requests))
    assert done == list(range(20))
    assert len(played.carried_out) == 20


def test_no_more_trials_are_on_their_way_than_the_workers_have_use_for(played: Played, connection: Connection) -> None:
    begun: list[TrialRequest] = []
    with ClusterExecutor(connection, pack) as target:
        done = 0
        for some in target.carry_out(trials(target, 10_000), begun.append):
            done += len(some)
            assert len(begun) - done <= 3 * target.parallel
            if done > 50:
                break


def test_workers_are_sent_what_they_lack_and_end_their_machines_in_the_end(
    played: Played, connection: Connection
) -> None:
    with ClusterExecutor(connection, pack):
        assert sorted(played.sent.values()) == [b"initramfs", b"kernel"]
    assert played.closed == 2


def test_what_a_worker_has_no_more_is_sent_again_and_its_plan_is_carried_out(
    played: Played, connection: Connection
) -> None:
    with ClusterExecutor(connection, pack) as target:
        played.lost = {"b3p0a0", "b7p0a0"}
        assert carry_out(target, 10) == list(range(10))
    assert len(played.sent) == 2


def test_workers_that_do_not_fit_are_refused_with_the_reason(place: Lab, connection: Connection) -> None:
    place.worker(Refusing())
    with (
        pytest.raises(RequestError, match=r"no worker .* can run this study: .*: it has QEMU 7.2.1 instead of 10.0.2"),
        ClusterExecutor(connection, pack),
    ):
        pass


def test_what_a_worker_cannot_do_is_the_error_of_the_run(place: Lab, connection: Connection) -> None:
    place.worker(Failing())
    with ClusterExecutor(connection, pack) as target:
        with pytest.raises(RunError, match=r"the disk is full \(on .*\)") as raised:
            carry_out(target, 3)
        assert raised.value.hint == "free some space"


def test_leaving_ends_what_is_on_its_way(place: Lab, connection: Connection) -> None:
    hanging = Hanging()
    place.worker(hanging)
    with ClusterExecutor(connection, pack) as target:
        waiting = threading.Thread(target=lambda: carry_out(target, 3))
        waiting.start()
        assert hanging.begun.wait(30)
    waiting.join(30)
    hanging.released.set()
    assert not waiting.is_alive()


def test_the_plan_of_a_worker_that_is_lost_is_carried_out_by_another(place: Lab, connection: Connection) -> None:
    hanging, good = Hanging(), Played()
    lost = place.worker(hanging)
    done: list[int] = []
    with ClusterExecutor(connection, pack) as target:
        waiting = threading.Thread(target=lambda: done.extend(carry_out(target, 5)))
        waiting.start()
        assert hanging.begun.wait(30)
        place.worker(good)
        place.cut(lost)
        waiting.join(30)
        hanging.released.set()
    assert done == list(range(5))
    assert len(good.carried_out) == 5


def test_a_plan_that_takes_four_workers_with_it_has_failed(place: Lab, connection: Connection) -> None:
    class Dying(Played):
        peer: Any

        def carry_out(self, ids: Sequence[str]) -> Answer:
            place.cut(self.peer)
            return super().carry_out(ids)

    for _ in range(5):
        dying = Dying()
        dying.peer = place.worker(dying)
    with ClusterExecutor(connection, pack) as target:
        (done,) = done_of(target, trials(target, 1))
        assert done.observation.problem == "every worker that tried it was lost"
        assert target.parallel == 5


def test_a_scheduler_that_is_lost_ends_the_run(played: Played, place: Lab, connection: Connection) -> None:
    with ClusterExecutor(connection, pack) as target:
        done = done_of(target, trials(target, 10_000))
        next(done)
        place.close()
        with pytest.raises(RunError, match="was lost during the run"):
            list(done)


def test_a_liar_is_named_and_nothing_that_it_gave_is_kept(place: Lab, connection: Connection) -> None:
    here = Here()
    for duties in (Lying(), Played(), Played()):
        place.worker(duties)
    with ClusterExecutor(connection, pack, own=lambda: here) as target:
        kept, (named,) = until_disagreed(target, 60)
        assert named not in kept, "not before its first trial was confirmed"
        assert named in target.environment[LEFT_OUT]
        again = list(done_of(target, trials(target, 60)))
        assert sorted(one.request.slot.block for one in again) == list(range(60))
        assert named not in {one.by for one in again}, "it is not asked again"
    assert here.plans, "this machine decides between two that say something else"


def test_a_liar_that_begins_late_is_found(place: Lab, connection: Connection) -> None:
    for duties in (Lying(since=20), Played()):
        place.worker(duties)
    with ClusterExecutor(connection, pack, own=Here) as target:
        kept, (named,) = until_disagreed(target, 2000)
    assert named in kept, "what it gave before was kept, and is to be dropped"


def test_one_worker_alone_is_checked_by_this_machine(place: Lab, connection: Connection) -> None:
    place.worker(liar := Lying())
    here = Here()
    with ClusterExecutor(connection, pack, own=lambda: here) as target, pytest.raises(Untrusted):
        carry_out(target, 5)
    assert len(liar.carried_out) <= 5
    assert here.plans


def test_about_one_trial_in_ten_is_measured_twice_and_nobody_can_tell_which(place: Lab, connection: Connection) -> None:
    workers = [Played(), Played()]
    for duties in workers:
        place.worker(duties)
    with ClusterExecutor(
        connection, pack, own=Here, checks=lambda measure: Checks(measure, key=b"one of many")
    ) as target:
        assert carry_out(target, 400) == list(range(400))
        assert 20 <= target.checked <= 70
    one, other = (set(duties.carried_out) for duties in workers)
    assert len(one & other) == target.checked, "by two workers, never twice by one"
    with ClusterExecutor(connection, pack, own=Here, checks=lambda measure: Checks(measure, key=b"another")) as target:
        before = one & other
        assert carry_out(target, 400) == list(range(400))
    repeated = {plan for duties in workers for plan in duties.carried_out if duties.carried_out.count(plan) > 1}
    assert repeated != before

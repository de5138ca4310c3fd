"""The cluster's side that asks, with workers that are threads of this process and guests that are only played."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ajuste.executor.executor import NOTES, TrialDone, TrialRequest, Untrusted
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Accepted
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from ajuste_fleet.cluster.connection import Connection
from ajuste_fleet.cluster.coordinator import ClusterExecutor
from ajuste_fleet.cluster.messages import PLANS, Answer, Ask, GuestJob, PackedGuest, Transcript, answer
from clusters import HELLO, JOB, Lab, lab, wait_for
from played import PlayedExecutor, said_of, trials


class Played:
    """Workers that say what they were told to; what is ``sent`` to them they have."""

    def __init__(self) -> None:
        self.sent: dict[str, bytes] = {}
        self.closed = 0
        self.lost: set[str] = set()
        self.lock = threading.Lock()
        self.carried_out: list[str] = []

    def answer(self, ask: Ask, job: str, body: bytes) -> Answer:
        match ask:
            case "receive":
                self.sent[hashlib.sha256(body).hexdigest()] = body
                return answer()
            case "survey":
                needed = GuestJob.model_validate_json(job)
                return answer(lacks=[each for each in (needed.kernel, needed.initramfs) if each not in self.sent])
            case "open":
                return answer(hello=HELLO, environment={"kernel": "5.10"})
            case "carry-out":
                return self.carry_out([plan.id for plan in PLANS.validate_json(body)])
            case _:
                self.closed += 1
                return answer()

    def carry_out(self, ids: Sequence[str]) -> Answer:
        with self.lock:
            if forgotten := self.lost.intersection(ids):
                self.lost -= forgotten
                self.sent.clear()
                return answer(lacks=(JOB.kernel, JOB.initramfs))
            self.carried_out += ids
        return answer(done=[self.transcript(each) for each in ids])

    def transcript(self, plan: str) -> Transcript:
        return Transcript(lines=said_of(plan), host_seconds=0.5)


class Refusing(Played):
    def answer(self, ask: Ask, job: str, body: bytes) -> Answer:
        is_survey = ask == "survey"
        return answer(refusal="it has QEMU 7.2.1 instead of 10.0.2") if is_survey else super().answer(ask, job, body)


class Failing(Played):
    def carry_out(self, ids: Sequence[str]) -> Answer:
        return answer(error="the disk is full", hint="free some space")


class Hanging(Played):
    def __init__(self) -> None:
        super().__init__()
        self.started, self.released = threading.Event(), threading.Event()

    def carry_out(self, ids: Sequence[str]) -> Answer:
        self.started.set()
        self.released.wait(30)
        return super().carry_out(ids)


class Wrong(Played):
    """A worker that says from its ``since``-th plan on that everything took longer."""

    def __init__(self, since: int = 0) -> None:
        super().__init__()
        self.since = since

    def transcript(self, plan: str) -> Transcript:
        return (
            Transcript(lines=said_of(plan, at_ns=7)) if len(self.carried_out) > self.since else super().transcript(plan)
        )


class Here(PlayedExecutor):
    """An executor on this machine, which is right."""

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
    return PackedGuest(JOB, files)


def on(connection: Connection, here: Here | None = None) -> ClusterExecutor:
    return ClusterExecutor(connection, pack, lambda: here or Here())


def done_of(target: ClusterExecutor, requests: list[TrialRequest]) -> Iterator[TrialDone]:
    for some in target.carry_out(requests, lambda _: None):
        yield from some


def carry_out(target: ClusterExecutor, count: int) -> list[int]:
    return sorted(done.request.slot.block for done in done_of(target, trials(target, count)))


def until_disagreed(target: ClusterExecutor, count: int) -> tuple[set[str], tuple[str, ...]]:
    """Return the workers whose trials were kept until one was found to be wrong, and where that one was."""
    stored_by: set[str] = set()
    try:
        for done in done_of(target, trials(target, count)):
            stored_by.add(done.by)
    except Untrusted as untrusted:
        return stored_by, untrusted.where
    raise AssertionError("nobody was found out")


def test_every_trial_comes_back_once(played: Played, connection: Connection) -> None:
    with on(connection) as target:
        assert target.parallel == 4
        assert target.environment == {"kernel": "5.10"}
        done = list(done_of(target, trials(target, 100)))
    assert sorted(each.request.slot.block for each in done) == list(range(100))
    assert len(played.carried_out) == 100 + target.repeated
    for each in done:
        assert each.observation.problem == ""
        assert each.observation.events[0] == Accepted(at_ns=1, id=each.plan.id)
        assert each.plan.id == f"b{each.request.slot.block}p0a0"


def test_trials_of_several_machines_are_carried_out_on_their_own(played: Played, connection: Connection) -> None:
    with on(connection) as first, on(connection) as second:
        requests = [*trials(first, 10), *trials(second, 10, first=10)]
        done = sorted(each.request.slot.block for each in done_of(first, requests))
    assert done == list(range(20))


def test_trials_that_end_together_do_not_end_the_run(place: Lab, connection: Connection) -> None:
    """Leave all that are under way to end while nobody looks."""
    place.worker(played := Played())
    started: list[TrialRequest] = []
    with on(connection) as target:
        done = 0
        for some in target.carry_out(trials(target, 12), started.append):
            done += len(some)
            wait_for(lambda: len(set(played.carried_out)) == len(started))
    assert done == 12


def test_no_more_trials_are_on_their_way_than_the_workers_have_use_for(played: Played, connection: Connection) -> None:
    started: list[TrialRequest] = []
    with on(connection) as target:
        done = 0
        for some in target.carry_out(trials(target, 10_000), started.append):
            done += len(some)
            assert len(started) - done <= 3 * target.parallel
            if done > 50:
                break


def test_workers_are_sent_what_they_lack_and_end_their_machines_in_the_end(
    played: Played, connection: Connection
) -> None:
    with on(connection):
        assert sorted(played.sent.values()) == [b"initramfs", b"kernel"]
    assert played.closed == 2


def test_what_a_worker_has_no_more_is_sent_again_and_its_plan_is_carried_out(
    played: Played, connection: Connection
) -> None:
    with on(connection) as target:
        played.lost = {"b3p0a0", "b7p0a0"}
        assert carry_out(target, 10) == list(range(10))
    assert len(played.sent) == 2


def test_workers_that_do_not_fit_are_refused_with_the_reason(place: Lab, connection: Connection) -> None:
    place.worker(Refusing())
    with pytest.raises(RequestError, match=r"no worker .*it has QEMU 7.2.1 instead of 10.0.2"), on(connection):
        pass


def test_a_worker_that_does_not_fit_measures_nothing(place: Lab, played: Played, connection: Connection) -> None:
    place.worker(refusing := Refusing())
    with on(connection) as target:
        assert target.parallel == 4
        assert carry_out(target, 20) == list(range(20))
    assert not refusing.carried_out


def test_a_worker_without_ajuste_is_refused(
    place: Lab, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def setup(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'ajuste'")

    monkeypatch.setattr("ajuste_fleet.cluster.worker.Station.setup", setup)
    place.worker(None)
    with pytest.raises(RequestError, match="it cannot run Ajuste: ModuleNotFoundError"), on(connection):
        pass


def test_what_the_scheduler_drops_is_measured_again(place: Lab, connection: Connection) -> None:
    place.worker(hanging := Hanging())
    with on(connection) as target:
        done: list[int] = []
        waiting = threading.Thread(target=lambda: done.extend(carry_out(target, 3)))
        waiting.start()
        assert hanging.started.wait(30)
        place.drop_all()
        hanging.released.set()
        waiting.join(30)
    assert done == [0, 1, 2]


def test_a_worker_that_comes_later_measures_as_well(place: Lab, connection: Connection) -> None:
    place.worker(hanging := Hanging())
    with on(connection) as target:
        done = done_of(target, trials(target, 10))
        place.worker(later := Played())
        threading.Timer(1, hanging.released.set).start()
        assert sorted(each.request.slot.block for each in done) == list(range(10))
    assert later.carried_out


def test_what_a_worker_cannot_do_is_the_error_of_the_run(place: Lab, connection: Connection) -> None:
    place.worker(Failing())
    with on(connection) as target:
        with pytest.raises(RunError, match=r"the disk is full \(on .*\)") as raised:
            carry_out(target, 3)
        assert raised.value.hint == "free some space"


def test_leaving_ends_what_is_on_its_way(place: Lab, connection: Connection) -> None:
    hanging = Hanging()
    place.worker(hanging)
    with on(connection) as target:
        waiting = threading.Thread(target=lambda: carry_out(target, 3))
        waiting.start()
        assert hanging.started.wait(30)
    waiting.join(30)
    hanging.released.set()
    assert not waiting.is_alive()


def test_the_plan_of_a_worker_that_is_lost_is_carried_out_by_another(place: Lab, connection: Connection) -> None:
    hanging, good = Hanging(), Played()
    lost = place.worker(hanging)
    done: list[int] = []
    with on(connection) as target:
        waiting = threading.Thread(target=lambda: done.extend(carry_out(target, 5)))
        waiting.start()
        assert hanging.started.wait(30)
        place.worker(good)
        place.cut(lost)
        waiting.join(30)
        hanging.released.set()
    assert done == list(range(5))
    assert set(good.carried_out) == {f"b{number}p0a0" for number in range(5)}


def test_the_only_worker_that_is_lost_while_it_boots_ends_the_run(
    place: Lab, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ajuste_fleet.cluster.connection.WORKER_SECONDS", 0.5)

    class Dying(Played):
        worker: Any

        def answer(self, ask: Ask, job: str, body: bytes) -> Answer:
            if ask == "open":
                place.cut(self.worker)
                threading.Event().wait(1)
            return super().answer(ask, job, body)

    dying = Dying()
    dying.worker = place.worker(dying)
    with pytest.raises(RunError, match="has lost all workers"), on(connection):
        raise AssertionError("it never opens")


def test_a_plan_that_takes_four_workers_with_it_has_failed(place: Lab, connection: Connection) -> None:
    class Dying(Played):
        worker: Any

        def carry_out(self, ids: Sequence[str]) -> Answer:
            place.cut(self.worker)
            threading.Event().wait(1)
            return super().carry_out(ids)

    for _ in range(5):
        dying = Dying()
        dying.worker = place.worker(dying)
    with on(connection) as target:
        (done,) = done_of(target, trials(target, 1))
    assert done.observation.problem == "every worker that tried it was lost"


def test_a_scheduler_that_is_lost_ends_the_run(played: Played, place: Lab, connection: Connection) -> None:
    with on(connection) as target:
        done = done_of(target, trials(target, 10_000))
        next(done)
        place.close()
        with pytest.raises(RunError, match="was lost during the run") as raised:
            list(done)
    assert "same command" in str(raised.value.hint)


def test_a_machine_that_measures_wrongly_is_named_and_asked_nothing_any_more(
    place: Lab, connection: Connection
) -> None:
    here = Here()
    for played in (Wrong(), Played(), Played()):
        place.worker(played)
    with on(connection, here) as target:
        _, (named,) = until_disagreed(target, 60)
        assert named in target.environment[NOTES]
        again = list(done_of(target, trials(target, 60)))
        assert sorted(each.request.slot.block for each in again) == list(range(60))
        assert named not in {each.by for each in again}, "it is not asked again"
    assert here.plans, "this machine decides between two that disagree"


def test_a_machine_that_begins_to_measure_wrongly_is_found(place: Lab, connection: Connection) -> None:
    for played in (Wrong(since=20), Played()):
        place.worker(played)
    with on(connection) as target:
        stored_by, (named,) = until_disagreed(target, 2000)
    assert named in stored_by, "its earlier trials were kept, and are to be dropped"


def test_one_worker_alone_is_checked_by_this_machine(place: Lab, connection: Connection) -> None:
    place.worker(Wrong())
    here = Here()
    with on(connection, here) as target, pytest.raises(Untrusted):
        carry_out(target, 5)
    assert here.plans


class Elsewhere(Played):
    """A worker that answers every plan with the events of another one."""

    def transcript(self, plan: str) -> Transcript:
        return Transcript(lines=said_of(f"{plan}x"), host_seconds=0.5)


class Counting(Played):
    """A worker that answers a plan with ``times`` results."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def carry_out(self, ids: Sequence[str]) -> Answer:
        single = super().carry_out(ids)
        assert single.done is not None
        return single.model_copy(update={"done": single.done * self.times})


@pytest.mark.parametrize("liar", [Elsewhere(), Counting(0), Counting(2)])
@pytest.mark.timeout(60)
def test_a_worker_that_answers_what_was_not_asked_is_named_and_others_measure_its_plans(
    place: Lab, connection: Connection, liar: Played
) -> None:
    address = place.worker(liar).address
    place.worker(Played())
    with on(connection) as target:
        _, where = until_disagreed(target, 60)
        assert where == (address,)
        assert address in target.environment[NOTES]
        assert carry_out(target, 60) == list(range(60))


def test_about_one_trial_in_ten_is_measured_by_two_machines(place: Lab, connection: Connection) -> None:
    workers = [Played(), Played()]
    for played in workers:
        place.worker(played)
    with on(connection) as target:
        assert carry_out(target, 200) == list(range(200))
    first, second = (set(played.carried_out) for played in workers)
    assert len(first & second) == target.repeated, "by two workers, never twice by one"
    assert target.repeated == pytest.approx(20, abs=4)

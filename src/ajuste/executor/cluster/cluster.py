"""The target ``cluster``: plans are carried out by whichever worker is free, and again if that one is lost."""

from __future__ import annotations

import itertools
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple, Self

from ajuste.executor.cluster.answer import PIECE_BYTES, Answer, Piece, Said, carried_out, observed_in, require
from ajuste.executor.cluster.checks import Checks, Disagreed, Given
from ajuste.executor.cluster.connection import WORKER_SECONDS, Connection, WorkerTask, asked
from ajuste.executor.cluster.wire import PackedGuest, Worker
from ajuste.executor.executor import LEFT_OUT, Begun, Executor, TrialDone, TrialRequest, Untrusted, now, side_by_side
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.event import Hello
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from ajuste.model.wording import Say

AHEAD: Final = 2
"""For each thread of a worker so many trials are under way or wait, so that none waits for the store."""

_WAIT_SECONDS = 0.5
_LOOK_EVERY_SECONDS = 3.0
_SLOWEST = 60
"""A worker may take so many seconds for one of the guest's; then it counts as lost."""
_BOOT_SECONDS = 1800.0


class _Flight(NamedTuple):
    number: int
    request: TrialRequest
    plan: Plan


class ClusterExecutor(Executor):
    """Machines of one kind, one on every worker. ``pack`` says what they are, and makes files in a directory for it.

    With ``own``, which makes such a machine here, some of what workers say is measured twice (see ``checks``).
    Entering raises RequestError for a cluster that cannot be reached or has no worker that fits.
    """

    def __init__(
        self,
        connection: Connection,
        pack: Callable[[Path], PackedGuest],
        say: Say = lambda _: None,
        own: Callable[[], Executor] | None = None,
        checks: Callable[[Callable[[Plan], Said]], Checks] = Checks,
    ) -> None:
        self._connection = connection
        self._pack = pack
        self._say = say
        self._own = own
        self._here: Executor | None = None
        self._checks = checks(self._measure_here) if own is not None else None
        self._stack = ExitStack()
        self._entered = ExitStack()
        self._parcel = ""
        self._files: dict[str, Path] = {}
        self._refused: dict[str, str] = {}
        self._untrusted: dict[str, str] = {}
        self._threads = 0
        self._hello: Hello | None = None
        self._environment: dict[str, str] = {}
        self._flights: list[dict[WorkerTask, _Flight]] = []
        self._looked = 0.0
        self._lacking_since: float | None = None
        self._left = threading.Event()

    @property
    def hello(self) -> Hello:
        assert self._hello is not None, "the target was not entered"
        return self._hello

    @property
    def environment(self) -> dict[str, str]:
        left_out = {LEFT_OUT: "; ".join(self._untrusted.values())} if self._untrusted else {}
        return {**self._environment, **left_out}

    @property
    def parallel(self) -> int:
        return max(1, self._threads)

    @property
    def checked(self) -> int:
        """How many trials were measured twice."""
        return self._checks.made if self._checks is not None else 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._stack = stack.enter_context(ExitStack())
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="ajuste-parcel-"))
            packed = self._pack(Path(directory))
            self._parcel, self._files = packed.parcel.model_dump_json(), packed.files
            self._connection.open()
            stack.callback(self._end)
            self._open(self._await_workers())
            self._entered = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        for flying in self._flights:
            self._connection.cancel(list(flying))
        self._entered.close()

    def carry_out(self, requests: Sequence[TrialRequest], begun: Begun) -> Iterator[list[TrialDone]]:
        """Of several machines, all at once. Ends early if the executor is left meanwhile."""
        by_executor: dict[Executor, list[TrialRequest]] = {}
        if any(request.study.counts_instructions for request in requests):
            raise RequestError(
                "workers do not count instructions", hint="run this study without a cluster, or name other metrics"
            )
        for request in requests:
            by_executor.setdefault(request.executor, []).append(request)
        if len(by_executor) == 1:
            yield from self._share_out(requests, begun)
        else:
            works = [executor.carry_out(own, begun) for executor, own in by_executor.items()]
            yield from side_by_side(works, len(works), by_executor)

    def _share_out(self, requests: Sequence[TrialRequest], begun: Begun) -> Iterator[list[TrialDone]]:
        ended: queue.SimpleQueue[WorkerTask] = queue.SimpleQueue()
        flying: dict[WorkerTask, _Flight] = {}
        waiting = (_begun(number, request, begun) for number, request in enumerate(requests))
        self._flights.append(flying)
        if self._checks is not None:
            self._checks.begin()
        try:
            while True:
                self._look()
                room = max(0, AHEAD * self.parallel - len(flying))
                self._send(itertools.islice(waiting, room), flying, ended)
                if not flying or self._left.is_set():
                    return
                if done := self._received(taken(ended), flying, ended) + self._confirmed_here(flying):
                    yield done
        except Disagreed as disagreed:
            raise self._distrust(disagreed) from None
        finally:
            self._connection.cancel(list(flying))
            self._flights.remove(flying)

    def _distrust(self, disagreed: Disagreed) -> Untrusted:
        for worker, plan in disagreed.workers.items():
            reason = f"{worker} returned a wrong result for the trial {plan}; its trials were dropped"
            self._untrusted[worker] = reason
            self._connection.ban(worker, "it returned a wrong result for a trial")
        self._looked = 0.0
        return Untrusted(list(disagreed.workers))

    def _received(
        self, tasks: Sequence[WorkerTask], flying: dict[WorkerTask, _Flight], ended: queue.SimpleQueue[WorkerTask]
    ) -> list[TrialDone]:
        """What ``tasks`` brought. What a worker could not do is sent again."""
        done: list[TrialDone] = []
        for task in tasks:
            flight = flying.pop(task, None)
            if flight is None:
                continue
            if task.answer is None:
                self._connection.require_alive()
                done += self._given_up(flight, flying)
            elif task.answer.done is None or len(task.answer.done) != 1:
                self._mend(task.by, task.answer)
                self._send([flight], flying, ended)
            else:
                given = Given(task.by, task.answer.done, _done(flight, task.answer.done, task.by))
                done += self._kept(flight, given, flying, ended)
        return done

    def _kept(
        self, flight: _Flight, given: Given, flying: dict[WorkerTask, _Flight], ended: queue.SimpleQueue[WorkerTask]
    ) -> list[TrialDone]:
        if self._checks is None:
            return [given.done]
        done = self._checks.add(flight.number, flight.plan, given)
        if self._checks.first_of(flight.number) is not None and not _is_flying(flight.number, flying):
            task = self._task(flight, ended, but=frozenset({given.by}))
            flying[task] = flight
            self._connection.submit([task])
        return done

    def _given_up(self, flight: _Flight, flying: dict[WorkerTask, _Flight]) -> list[TrialDone]:
        """Too many workers were lost with it: a failed trial, unless somebody else has or had it, too."""
        if _is_flying(flight.number, flying):
            return []
        if self._checks is not None and self._checks.first_of(flight.number) is not None:
            return self._checks.alone(flight.number)
        if self._checks is not None:
            self._checks.forget(flight.number)
        return [_lost(flight)]

    def _confirmed_here(self, flying: dict[WorkerTask, _Flight]) -> list[TrialDone]:
        """What no other worker can confirm is measured by this machine."""
        if self._checks is None:
            return []
        there = {worker.address for worker in self._connection.workers()} - set(self._refused)
        done: list[TrialDone] = []
        for task, flight in list(flying.items()):
            first = self._checks.first_of(flight.number)
            if first is not None and not task.by and there <= {first}:
                self._connection.cancel([task])
                flying.pop(task)
                self._say("repeating a trial here")
                done += self._checks.alone(flight.number)
        return done

    def _measure_here(self, plan: Plan) -> Said:
        if self._here is None:
            assert self._own is not None
            self._here = self._stack.enter_context(self._own())
        return carried_out(self._here, plan)

    def _mend(self, worker: str, answer: Answer) -> None:
        """What stood in the way of plans is mended. Raises what cannot be."""
        require(answer)
        if answer.done is not None or not (answer.lacks or answer.refusal):
            self._connection.ban(worker, "its answer does not match the request")
            return
        self._admit([one for one in self._connection.workers() if one.address not in self._refused])

    def _send(
        self, flights: Iterable[_Flight], flying: dict[WorkerTask, _Flight], ended: queue.SimpleQueue[WorkerTask]
    ) -> None:
        tasks: list[WorkerTask] = []
        for flight in flights:
            task = self._task(flight, ended)
            flying[task] = flight
            tasks.append(task)
            if self._checks is not None and self._checks.chosen(flight.number, flight.plan):
                twin = self._task(flight, ended)
                task.twin, twin.twin = twin, task
                flying[twin] = flight
                tasks.append(twin)
        if tasks:
            self._connection.submit(tasks)

    def _task(
        self, flight: _Flight, ended: queue.SimpleQueue[WorkerTask], but: frozenset[str] = frozenset()
    ) -> WorkerTask:
        plan = flight.plan
        seconds = (plan.timeout_ns + plan.settle_ns + plan.observe_ns) / 1e9
        return WorkerTask(
            "carry-out",
            asked(self._parcel, (plan,)),
            ended.put,
            but=but | set(self._refused),
            limit_s=_BOOT_SECONDS + _SLOWEST * seconds,
        )

    def _look(self) -> None:
        """Now and then: whether the cluster is still there, and how many of its workers. Raises RunError if not."""
        self._connection.require_alive()
        if time.monotonic() - self._looked < _LOOK_EVERY_SECONDS:
            return
        workers = [worker for worker in self._connection.workers() if worker.address not in self._refused]
        self._looked = time.monotonic()
        if workers:
            self._threads = sum(worker.threads for worker in workers)
            self._lacking_since = None
            return
        self._say("waiting for a worker")
        self._lacking_since = self._lacking_since or self._looked
        if self._looked - self._lacking_since > WORKER_SECONDS:
            raise RunError(
                f"{self._connection.cluster} has lost all workers{self._left_out()}",
                hint="run the same command to resume; finished trials are kept",
            )

    def _left_out(self) -> str:
        found = [f"{worker}: {reason}" for worker, reason in self._connection.banned.items()]
        return f"; left out: {'; '.join(found)}" if found else ""

    def _await_workers(self) -> list[Worker]:
        """The workers that fit, as soon as there are any."""
        deadline = time.monotonic() + WORKER_SECONDS
        while not (workers := self._connection.workers()):
            self._say("waiting for a worker")
            if time.monotonic() > deadline:
                raise RequestError(
                    f"{self._connection.cluster} has no workers{self._left_out()}",
                    hint=f"start them: ajuste cluster worker --scheduler {self._connection.cluster.address}",
                )
            time.sleep(_WAIT_SECONDS if self._connection.cluster.address else 0.01)
        self._say("checking the workers")
        self._admit(workers)
        fitting = [one for one in self._connection.workers() if one.address not in self._refused]
        if not fitting:
            raise RequestError(
                f"no worker of {self._connection.cluster} can run this study: {self._refusals()}{self._left_out()}",
                hint="install the same version of Ajuste and of QEMU on every machine",
            )
        if self._refused:
            self._say(f"left out: {self._refusals()}")
        self._threads = sum(worker.threads for worker in fitting)
        return fitting

    def _admit(self, workers: Sequence[Worker]) -> None:
        """Ask workers whether they fit, and send them what they lack."""
        addresses = [worker.address for worker in workers]
        answers = self._connection.ask("survey", asked(self._parcel), workers=addresses)
        lacking: dict[str, list[str]] = {}
        for address, answer in answers.items():
            if answer.refusal:
                self._refused[address] = f"{address} ({answer.where}): {answer.refusal}"
            for digest in answer.lacks:
                if digest in self._files:
                    lacking.setdefault(digest, []).append(address)
        for digest, lackers in lacking.items():
            self._say(f"sending {self._files[digest].name} to {len(lackers)} workers")
            self._send_file(digest, lackers)

    def _send_file(self, digest: str, workers: list[str]) -> None:
        size_bytes = self._files[digest].stat().st_size
        with self._files[digest].open("rb") as file:
            for offset in range(0, size_bytes, PIECE_BYTES):
                piece = Piece(digest, offset, size_bytes, file.read(PIECE_BYTES))
                for answer in self._connection.ask("receive", piece.packed(), workers=workers).values():
                    require(answer)

    def _refusals(self) -> str:
        return "; ".join(self._refused.values())

    def _open(self, workers: Sequence[Worker]) -> None:
        """Have every worker make its machine ready; go on when the first one has."""
        self._say(f"booting on {len(workers)} workers")
        ended: queue.SimpleQueue[WorkerTask] = queue.SimpleQueue()
        body = asked(self._parcel)
        self._connection.submit(
            [WorkerTask("open", body, ended.put, worker=one.address, limit_s=_BOOT_SECONDS) for one in workers]
        )
        left = len(workers)
        while left:
            self._connection.require_alive()
            for task in taken(ended):
                left -= 1
                if task.answer is None:
                    continue
                require(task.answer)
                if task.answer.hello is None:
                    self._connection.ban(task.by, "its answer does not match the request")
                    continue
                self._hello, self._environment = task.answer.hello, dict(task.answer.environment)
                return
        raise RunError(f"all workers of {self._connection.cluster} were lost while they booted{self._left_out()}")

    def _end(self) -> None:
        """Have every worker end its machine, and with it what still runs there."""
        try:
            addresses = [worker.address for worker in self._connection.workers()]
            self._connection.ask("close", asked(self._parcel), workers=addresses)
        except AjusteError:
            return  # The cluster is gone, and its workers with it or soon.


def taken(ended: queue.SimpleQueue[WorkerTask]) -> list[WorkerTask]:
    """All that has come by now; waits a little for the first."""
    found = []
    try:
        found.append(ended.get(timeout=_WAIT_SECONDS))
        while True:
            found.append(ended.get_nowait())
    except queue.Empty:
        return found


def _is_flying(number: int, flying: dict[WorkerTask, _Flight]) -> bool:
    return any(flight.number == number for flight in flying.values())


def _begun(number: int, request: TrialRequest, begun: Begun) -> _Flight:
    plan = request.plan()
    begun(request)
    return _Flight(number, request, plan)


def _lost(flight: _Flight) -> TrialDone:
    lost = Observation(problem="every worker that tried it was lost")
    return TrialDone(flight.request, flight.plan, now(), lost)


def _done(flight: _Flight, said: Sequence[Said], by: str) -> TrialDone:
    ((started, observation),) = observed_in([flight.plan], said)
    return TrialDone(flight.request, flight.plan, started, observation, by=by)

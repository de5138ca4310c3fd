"""The coordinator of a cluster: plans for guests on any free worker, and whole blocks for machines as they are."""

from __future__ import annotations

import itertools
import queue
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from pydantic import ValidationError

from ajuste.design.stopping import Pace, StoppingLimits, on_each
from ajuste.executor.executor import (
    NOTES,
    Executor,
    OnStart,
    TrialDone,
    TrialRequest,
    Untrusted,
    now,
    side_by_side,
)
from ajuste.machine.inventory.inventory import Inventory, summarise
from ajuste.model.base import first_problem
from ajuste.model.caller import open_found
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.event import Hello
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from ajuste.model.wording import Say, first_few, visible_line
from ajuste.study.resolved import ResolvedStudy
from ajuste_fleet.cluster.connection import LOOK_SECONDS, Absence, Connection, Ended
from ajuste_fleet.cluster.messages import Answer, HostJob, PackedGuest, Transcript, read_observations, run_plan

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Future

AHEAD: Final = 2
"""Number of trials in flight for each thread of a worker: with only one, a worker would wait for the store."""
CHECKED_IN: Final = 10
"""Number of trials of which one is measured twice; the first one of each worker always is."""
MOST_TRIES: Final = 4


class _First(NamedTuple):
    transcript: Transcript
    done: TrialDone


@dataclass
class _Flight:
    request: TrialRequest
    plan: Plan
    first: _First | None = None
    workers: Collection[str] | None = None
    tries: int = 0
    future: Future[Any] | None = None


class ClusterExecutor(Executor):
    """Guests of one kind, one on every worker. ``pack`` packs one into a directory.

    ``local`` makes such a guest here: it decides where two workers disagree. Entering raises RequestError for a
    cluster that cannot be reached or has no worker that fits.
    """

    def __init__(
        self,
        connection: Connection,
        pack: Callable[[Path], PackedGuest],
        local: Callable[[], Executor],
        say: Say = lambda _: None,
    ) -> None:
        self._connection = connection
        self._pack = pack
        self._local = local
        self._say = say
        self._here: Executor | None = None
        self._stack = ExitStack()
        self._job = ""
        self._files: dict[str, Path] = {}
        self._fitting: dict[str, int] = {}
        self._refused: dict[str, str] = {}
        self._untrusted: dict[str, str] = {}
        self._checked: set[str] = set()
        self._numbers = itertools.count(1)
        self._hello: Hello | None = None
        self._environment: dict[str, str] = {}
        self._looked = 0.0
        self._absence = Absence()
        self._left = threading.Event()
        self.repeated = 0
        """Number of trials that were measured twice."""

    @property
    def hello(self) -> Hello:
        assert self._hello is not None, "the target was not entered"
        return self._hello

    @property
    def environment(self) -> dict[str, str]:
        left_out = (f"A worker was left out: {reason}." for reason in dict.fromkeys(self._untrusted.values()))
        notes = " ".join(filter(None, (self._environment.get(NOTES), *left_out)))
        return {**self._environment, **({NOTES: notes} if notes else {})}

    @property
    def parallel(self) -> int:
        return max(1, sum(self._fitting.values()))

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="ajuste-job-"))
            packed = self._pack(Path(directory))
            self._job, self._files = packed.job.model_dump_json(), packed.files
            self._connection.open()
            stack.callback(self._close)
            self._await_workers()
            self._open()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        self._stack.close()

    def carry_out(self, requests: Sequence[TrialRequest], on_start: OnStart) -> Iterator[list[TrialDone]]:
        """Run several kinds of guests at once. Ends early if the executor is left meanwhile."""
        if any(request.study.counts_instructions for request in requests):
            raise RequestError(
                "workers do not count instructions", hint="run this study without a cluster, or name other metrics"
            )
        by_executor: dict[Executor, list[TrialRequest]] = {}
        for request in requests:
            by_executor.setdefault(request.executor, []).append(request)
        if len(by_executor) == 1:
            yield from self._share_out(requests, on_start)
        else:
            works = [executor.carry_out(group, on_start) for executor, group in by_executor.items()]
            yield from side_by_side(works, len(works), by_executor)

    def _share_out(self, requests: Sequence[TrialRequest], on_start: OnStart) -> Iterator[list[TrialDone]]:
        ended: Ended = queue.SimpleQueue()
        flying: dict[Key, _Flight] = {}
        waiting = (_started_flight(request, on_start) for request in requests)
        try:
            while True:
                done = self._look(flying, ended)
                self._send(list(itertools.islice(waiting, max(0, AHEAD * self.parallel - len(flying)))), flying, ended)
                is_over = not flying or self._left.is_set()
                if not is_over:
                    done += self._received(flying, ended)
                if done:
                    yield done
                if is_over:
                    return
        finally:
            self._connection.cancel([flight.future for flight in flying.values() if flight.future is not None])

    def _send(self, flights: Sequence[_Flight], flying: dict[Key, _Flight], ended: Ended) -> None:
        # A repetition goes to another worker than the first measurement, so each is submitted by itself.
        anywhere = None if not self._refused else set(self._fitting)
        for flight in flights:
            flight.workers = set(self._fitting) - {flight.first.done.by} if flight.first else anywhere
        free = [flight for flight in flights if not flight.first]
        for group in filter(None, (free, *([flight] for flight in flights if flight.first))):
            futures = self._connection.submit(
                "carry-out", self._job, [[flight.plan] for flight in group], ended, group[0].workers
            )
            for flight, future in zip(group, futures, strict=True):
                flight.future = future
                flying[future.key] = flight

    def _received(self, flying: dict[Key, _Flight], ended: Ended) -> list[TrialDone]:
        done: list[TrialDone] = []
        again: list[_Flight] = []
        unfit = False
        for future, answer in self._connection.taken(ended):
            if (flight := flying.pop(future.key, None)) is None:
                continue
            if answer is not None and answer.done is None:
                answer.require()
                unfit = True
                flight.tries += 1
            if answer is not None and answer.done is not None and len(answer.done) != 1:
                raise self._left_out_for([answer.worker], flight.plan)
            if answer is None or flight.tries >= MOST_TRIES:
                done += self._compared(flight, None) if flight.first else [_lost(flight)]
            elif not answer.done:
                again.append(flight)
            elif flight.first is not None:
                done += self._compared(flight, answer)
            else:
                ((started, observation),) = read_observations([flight.plan], answer.done)
                trial = TrialDone(flight.request, flight.plan, started, observation, by=answer.worker)
                is_new = answer.worker not in self._checked
                self._checked.add(answer.worker)
                if is_new or next(self._numbers) % CHECKED_IN == 0:
                    flight.first = _First(answer.done[0], trial)
                    again.append(flight)
                else:
                    done.append(trial)
        if unfit:
            self._admit(self._connection.workers())
        return done + self._resend(again, flying, ended)

    def _resend(self, flights: Sequence[_Flight], flying: dict[Key, _Flight], ended: Ended) -> list[TrialDone]:
        here = [flight for flight in flights if flight.first and self._fitting.keys() <= {flight.first.done.by}]
        self._send([flight for flight in flights if flight not in here], flying, ended)
        return [trial for flight in here for trial in self._compared(flight, None)]

    def _compared(self, flight: _Flight, other: Answer | None) -> list[TrialDone]:
        # Without a second worker, or if two disagree, this machine measures the trial and decides who is wrong.
        assert flight.first is not None
        self.repeated += 1
        first, done = flight.first
        if other is not None and other.done and _same(first, other.done[0]):
            return [done]
        if self._here is None:
            self._say("repeating a trial here")
            self._here = self._stack.enter_context(self._local())
        local = run_plan(self._here, flight.plan)
        both = {done.by: first} | ({other.worker: other.done[0]} if other is not None and other.done else {})
        if wrong := [worker for worker, report in both.items() if not _same(report, local)]:
            raise self._left_out_for(wrong, flight.plan)
        return [done]

    def _left_out_for(self, workers: Sequence[str], plan: Plan) -> Untrusted:
        for worker in workers:
            reason = f"{worker} returned a wrong result for the trial {plan.id}; its trials were dropped"
            self._untrusted[worker] = self._refused[worker] = reason
            self._fitting.pop(worker, None)
            self._say(f"left out: {reason}")
        return Untrusted(workers)

    def _look(self, flying: dict[Key, _Flight], ended: Ended) -> list[TrialDone]:
        # A trial that waits for workers that are gone would wait for ever: it is sent to another.
        self._connection.require_alive()
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return []
        workers = self._connection.workers()
        self._looked = time.monotonic()
        if new := workers.keys() - self._fitting.keys() - self._refused.keys():
            self._admit({address: workers[address] for address in new})
        self._fitting = {address: workers[address] for address in self._fitting if address in workers}
        if self._absence.is_too_long(absent=not self._fitting):
            raise self._all_lost()
        if not self._fitting:
            self._say("waiting for a worker")
            return []
        stuck = {
            key: flight
            for key, flight in flying.items()
            if flight.workers is not None and not self._fitting.keys() & flight.workers
        }
        for key, flight in stuck.items():
            del flying[key]
            self._connection.cancel([flight.future] if flight.future is not None else [])
        return self._resend(list(stuck.values()), flying, ended)

    def _await_workers(self) -> None:
        while not (workers := self._connection.workers()):
            self._say("waiting for a worker")
            if self._absence.is_too_long(absent=True):
                raise RequestError(
                    f"{self._connection.cluster} has no workers",
                    hint=f"start them: ajuste cluster worker --scheduler {self._connection.cluster.address}",
                )
            time.sleep(0.1)
        self._say("checking the workers")
        self._admit(workers)
        if not self._fitting:
            raise RequestError(
                f"no worker of {self._connection.cluster} can run this study{self._left_out()}",
                hint="install the same version of Ajuste and of QEMU on every machine",
            )

    def _admit(self, workers: dict[str, int]) -> None:
        lacking: dict[str, list[str]] = {}
        candidates = workers.keys() - self._refused.keys()
        for address, answer in self._connection.ask("survey", self._job, workers=candidates).items():
            if answer.refusal or answer.error:
                self._refused[address] = f"{address} ({answer.where}): {answer.refusal or answer.error}"
                self._fitting.pop(address, None)
                self._say(f"left out: {self._refused[address]}")
                continue
            self._fitting[address] = workers[address]
            for digest in answer.lacks:
                if digest in self._files:
                    lacking.setdefault(digest, []).append(address)
        for digest, addresses in lacking.items():
            self._say(f"sending {self._files[digest].name} to {len(addresses)} workers")
            with open_found(self._files[digest]) as file:
                content = file.read()
            for answer in self._connection.ask("receive", "", content, workers=addresses).values():
                answer.require()

    def _left_out(self) -> str:
        return f"; left out: {'; '.join(self._refused.values())}" if self._refused else ""

    def _all_lost(self) -> RunError:
        return RunError(
            f"{self._connection.cluster} has lost all workers{self._left_out()}",
            hint="run the same command to resume; finished trials are kept",
        )

    def _open(self) -> None:
        self._say("booting on a worker")
        ended: Ended = queue.SimpleQueue()
        only = set(self._fitting) if self._refused else None
        futures = self._connection.submit("open", self._job, [[]], ended, only)
        while not (taken := self._connection.taken(ended)):
            workers = self._connection.workers().keys()
            if self._absence.is_too_long(absent=not (workers if only is None else workers & only)):
                self._connection.cancel(futures)
                raise self._all_lost()
        ((_, answer),) = taken
        if answer is not None:
            answer.require()
        if answer is None or answer.hello is None:
            raise RunError(f"the workers of {self._connection.cluster} were lost while they booted")
        self._hello, self._environment = answer.hello, dict(answer.environment)

    def _close(self) -> None:
        try:
            workers = self._connection.workers().keys() & self._fitting.keys()
            self._connection.ask("close", self._job, workers=workers)
        except AjusteError:
            return  # The cluster is gone, and its workers with it or soon.


def _same(first: Transcript, other: Transcript) -> bool:
    return (first.lines, first.problem) == (other.lines, other.problem)


def _started_flight(request: TrialRequest, on_start: OnStart) -> _Flight:
    plan = request.plan()
    on_start(request)
    return _Flight(request, plan)


def _lost(flight: _Flight) -> TrialDone:
    lost = Observation(problem="every worker that tried it was lost")
    return TrialDone(flight.request, flight.plan, now(), lost)


# Machines of a cluster that measure on the host: whole blocks, by their own clocks.


if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Future

MOST_LOST: Final = 3
"""Number of machines lost during one block after which the run ends: the block may be the cause."""
MOST_LISTED: Final = 40
"""Maximum number of machines whose names are listed."""


@dataclass(frozen=True)
class _Machine:
    name: str
    worker: str
    identity: str
    resolved: ResolvedStudy


class _Block(NamedTuple):
    # Trials that one machine runs one after the other; `machine` names it if it must be a certain one.
    number: int
    requests: tuple[TrialRequest, ...]
    machine: str


class _BlockFlight(NamedTuple):
    block: _Block
    machine: _Machine
    plans: tuple[Plan, ...]
    future: Future[Any]


class BenchExecutor(Executor):
    """The machines that were offered for measuring (``ajuste cluster worker --bench``), each one block at a time.

    Entering raises RequestError for a cluster that cannot be reached or has no such machine that fits ``resolved``.
    """

    keeps_values = True
    whole_blocks = True

    def __init__(
        self, connection: Connection, job: HostJob, resolved: ResolvedStudy, say: Say = lambda _: None
    ) -> None:
        self._connection = connection
        self._resolved = resolved
        self._say = say
        self._job = job.model_dump_json()
        self._stack = ExitStack()
        self._there: dict[str, _Machine] = {}
        self._studies: dict[str, ResolvedStudy] = {}
        self._known: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._losses: list[str] = []
        self._flying: dict[Key, _BlockFlight] = {}
        self._lost: Counter[int] = Counter()
        self._looked = 0.0
        self._absence = Absence()

    @property
    def hello(self) -> Hello:
        raise RunError("no single machine stands for many")

    @property
    def environment(self) -> dict[str, str]:
        absent = [*(f"left out: {reason}" for reason in self._refused.values()), *self._losses]
        words = "; ".join(first_few(absent, MOST_LISTED))
        notes = {NOTES: f"Machines that did not measure to the end: {words}."} if absent else {}
        return {"clock": "wall", "machines": ", ".join(first_few(self._known, MOST_LISTED)), **notes}

    @property
    def machines(self) -> dict[str, dict[str, Any]]:
        return dict(self._known)

    @property
    def present(self) -> tuple[str, ...]:
        return tuple(machine.name for machine in self._there.values())

    @property
    def parallel(self) -> int:
        return max(1, len(self._there))

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._connection.open()
            stack.callback(self._close)
            self._say("checking the machines")
            self._admit(self._connection.workers())
            if not self._there:
                raise self._none_fits()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.cancel([flight.future for flight in self._flying.values()])
        self._stack.close()

    def more_blocks(self, pace: Pace, limits: StoppingLimits) -> int:
        return on_each(self.parallel, pace, limits)

    def carry_out(self, requests: Sequence[TrialRequest], on_start: OnStart) -> Iterator[list[TrialDone]]:
        """Run one block on each machine at a time, given back whole; another machine repeats that of a lost one."""
        by_block: dict[int, list[TrialRequest]] = {}
        for request in requests:
            by_block.setdefault(request.slot.block, []).append(request)
        waiting = deque(_Block(number, tuple(block), block[0].machine) for number, block in by_block.items())
        ended: Ended = queue.SimpleQueue()
        try:
            while waiting or self._flying:
                self._look(waiting)
                self._send(waiting, ended, on_start)
                for future, answer in self._connection.taken(ended) if self._flying else ():
                    flight = self._flying.pop(future.key, None)
                    if flight is not None and (done := self._received(flight, answer, waiting)):
                        yield done
        finally:
            self._connection.cancel([flight.future for flight in self._flying.values()])
            self._flying.clear()

    def _send(self, waiting: deque[_Block], ended: Ended, on_start: OnStart) -> None:
        # A block that only a certain machine may have is dropped once that machine is gone.
        busy = {flight.machine.worker for flight in self._flying.values()}
        for machine in [machine for machine in self._there.values() if machine.worker not in busy]:
            block = next((block for block in waiting if block.machine in ("", machine.name)), None)
            if block is None:
                continue
            waiting.remove(block)
            on_start(block.requests[0])
            plans = tuple(request._replace(study=machine.resolved).plan() for request in block.requests)
            (future,) = self._connection.submit("bench-carry-out", self._job, [plans], ended, [machine.worker])
            self._flying[future.key] = _BlockFlight(block, machine, plans, future)
        names = {machine.name for machine in self._there.values()}
        for block in [block for block in waiting if block.machine and block.machine not in names]:
            waiting.remove(block)

    def _received(self, flight: _BlockFlight, answer: Answer | None, waiting: deque[_Block]) -> list[TrialDone]:
        if answer is not None and (answer.refusal or answer.wrong):
            # Such as another experiment that goes on there: others may still measure.
            self._refuse(flight.machine.worker, answer, answer.refusal or answer.error or "")
            waiting.appendleft(flight.block)
            if not self._there:
                raise self._none_fits()
            return []
        if answer is not None:
            answer.require()
        if answer is None or len(answer.done or ()) != len(flight.plans):
            self._give_up(flight, waiting)
            return []
        observed = read_observations(flight.plans, answer.done or (), restores=True)
        return [
            TrialDone(request, plan, started, observation, machine=flight.machine.name)
            for request, plan, (started, observation) in zip(flight.block.requests, flight.plans, observed, strict=True)
        ]

    def _give_up(self, flight: _BlockFlight, waiting: deque[_Block]) -> None:
        name, number = flight.machine.name, flight.block.number
        self._there.pop(flight.machine.worker, None)
        self._losses.append(f"{name} was lost in block {number}")
        self._say(f"{name} was lost; another machine repeats its block")
        self._lost[number] += 1
        if self._lost[number] >= MOST_LOST:
            raise RunError(
                f"{MOST_LOST} machines were lost during block {number}, the last {name}",
                hint="run the same command to resume; finished trials are kept",
            )
        waiting.appendleft(flight.block)

    def _look(self, waiting: deque[_Block]) -> None:
        # `bench-renew` also renews the machines' leases: without it they restore everything and end the study.
        self._connection.require_alive()
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        workers = self._connection.workers()
        self._looked = time.monotonic()
        self._there = {worker: machine for worker, machine in self._there.items() if worker in workers}
        for key, flight in list(self._flying.items()):
            if flight.machine.worker not in workers:
                del self._flying[key]
                self._connection.cancel([flight.future])
                self._give_up(flight, waiting)
        self._connection.ask("bench-renew", self._job, workers=self._there)
        self._admit(workers)
        if self._absence.is_too_long(absent=not self._there):
            raise RunError(
                f"{self._connection.cluster} has lost all machines that measure",
                hint="run the same command to resume; finished trials are kept",
            )
        if not self._there:
            self._say("waiting for a machine")

    def _admit(self, workers: dict[str, int]) -> None:
        candidates = workers.keys() - self._there.keys() - self._refused.keys()
        for worker, answer in self._connection.ask("bench-survey", self._job, workers=candidates).items():
            if reason := answer.refusal or answer.error:
                self._refuse(worker, answer, reason)
                continue
            try:
                if answer.resolved not in self._studies:  # Most machines say the same.
                    self._studies[answer.resolved] = ResolvedStudy.model_validate_json(answer.resolved)
                resolved = self._studies[answer.resolved]
                inventory = Inventory.model_validate_json(answer.inventory)
            except ValidationError as error:
                self._refuse(worker, answer, f"its answer is malformed: {visible_line(first_problem(error)[:300])}")
                continue
            if any(machine.identity == answer.identity for machine in self._there.values()):
                self._refuse(worker, answer, "another worker already measures on this machine")
            elif (resolved.names, resolved.factors) != (self._resolved.names, self._resolved.factors):
                configurations = visible_line(", ".join(resolved.names)[:1000])
                self._refuse(worker, answer, f"the study has different configurations there: {configurations}")
            else:
                # Two machines can have the same name.
                names = [answer.where, *(f"{answer.where} ({number})" for number in range(2, len(self._names) + 3))]
                name = next(name for name in names if self._names.setdefault(name, answer.identity) == answer.identity)
                self._known[name] = {**summarise(inventory), "inventory": inventory.model_dump(mode="json")}
                self._there[worker] = _Machine(name, worker, answer.identity, resolved)

    def _refuse(self, worker: str, answer: Answer, reason: str) -> None:
        self._there.pop(worker, None)
        self._refused[worker] = f"{worker} ({answer.where}): {reason}"
        self._say(f"left out: {self._refused[worker]}")

    def _none_fits(self) -> RequestError:
        if not self._refused:
            return RequestError(
                f"{self._connection.cluster} has no workers",
                hint=f"start them: ajuste cluster worker --bench --scheduler {self._connection.cluster.address}",
            )
        return RequestError(
            f"no machine of {self._connection.cluster} can measure this study: {'; '.join(self._refused.values())}",
            hint="check what each machine needs: `ajuste help several-machines`",
        )

    def _close(self) -> None:
        with suppress(AjusteError):  # Where the cluster is gone, its workers restore everything by themselves.
            workers = self._connection.workers().keys() - self._refused.keys()
            self._connection.ask("bench-close", self._job, workers=workers)

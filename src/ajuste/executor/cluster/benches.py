"""Machines of a cluster as they are, each of which measures whole blocks by its own clock."""

from __future__ import annotations

import queue
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from pydantic import ValidationError

from ajuste.design.stopping import Pace, StoppingLimits, on_each
from ajuste.executor.cluster.connection import LOOK_SECONDS, Absence, Connection, Ended
from ajuste.executor.cluster.messages import Answer, HostJob, read_observations
from ajuste.executor.executor import Begun, Executor, TrialDone, TrialRequest
from ajuste.machine.inventory.inventory import Inventory, summary_of
from ajuste.model.base import first_problem
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.event import Hello
from ajuste.model.plan import Plan
from ajuste.model.wording import Say, visible_line
from ajuste.study.resolved import ResolvedStudy

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Future

MOST_LOST: Final = 3
"""A block during which so many machines were lost is not begun again: it may be to blame."""


@dataclass(frozen=True)
class _Machine:
    """A worker that measures, and what the study comes to there."""

    name: str
    worker: str
    identity: str
    resolved: ResolvedStudy


class _Block(NamedTuple):
    """Trials that one machine runs one after the other: ``machine``, if it must be that one."""

    number: int
    requests: tuple[TrialRequest, ...]
    machine: str


class _Flight(NamedTuple):
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
        self._known: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._flying: dict[Key, _Flight] = {}
        self._lost: Counter[int] = Counter()
        self._looked = 0.0
        self._absence = Absence()

    @property
    def hello(self) -> Hello:
        raise RunError("no single machine stands for many")

    @property
    def environment(self) -> dict[str, str]:
        return {"clock": "wall", "machines": ", ".join(self._known)}

    @property
    def machines(self) -> dict[str, dict[str, Any]]:
        return dict(self._known)

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

    def carry_out(self, requests: Sequence[TrialRequest], begun: Begun) -> Iterator[list[TrialDone]]:
        """One block on each machine at a time, given back whole. Another machine repeats the block of a lost one."""
        by_block: dict[int, list[TrialRequest]] = {}
        for request in requests:
            by_block.setdefault(request.slot.block, []).append(request)
        waiting = deque(_Block(number, tuple(own), own[0].machine) for number, own in by_block.items())
        ended: Ended = queue.SimpleQueue()
        try:
            while waiting or self._flying:
                self._look(waiting)
                self._send(waiting, ended, begun)
                for future, answer in self._connection.taken(ended) if self._flying else ():
                    flight = self._flying.pop(future.key, None)
                    if flight is not None and (done := self._received(flight, answer, waiting)):
                        yield done
        finally:
            self._connection.cancel([flight.future for flight in self._flying.values()])
            self._flying.clear()

    def _send(self, waiting: deque[_Block], ended: Ended, begun: Begun) -> None:
        """Give each free machine the first block that it may have; drop those of machines that are gone."""
        busy = {flight.machine.worker for flight in self._flying.values()}
        for machine in [machine for machine in self._there.values() if machine.worker not in busy]:
            block = next((block for block in waiting if block.machine in ("", machine.name)), None)
            if block is None:
                continue
            waiting.remove(block)
            begun(block.requests[0])
            plans = tuple(request._replace(study=machine.resolved).plan() for request in block.requests)
            (future,) = self._connection.submit("bench-carry-out", self._job, [plans], ended, [machine.worker])
            self._flying[future.key] = _Flight(block, machine, plans, future)
        names = {machine.name for machine in self._there.values()}
        for block in [block for block in waiting if block.machine and block.machine not in names]:
            waiting.remove(block)

    def _received(self, flight: _Flight, answer: Answer | None, waiting: deque[_Block]) -> list[TrialDone]:
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

    def _give_up(self, flight: _Flight, waiting: deque[_Block]) -> None:
        """Have another machine repeat the block of one that was lost in the middle."""
        name, number = flight.machine.name, flight.block.number
        self._there.pop(flight.machine.worker, None)
        self._say(f"{name} was lost; another machine repeats its block")
        self._lost[number] += 1
        if self._lost[number] >= MOST_LOST:
            raise RunError(
                f"{MOST_LOST} machines were lost during block {number}, the last {name}",
                hint="run the same command to resume; finished trials are kept",
            )
        waiting.appendleft(flight.block)

    def _look(self, waiting: deque[_Block]) -> None:
        """Now and then: which machines there are, which also tells them that this side is there."""
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
        """Ask workers that are new whether their machine can measure the study."""
        asked = workers.keys() - self._there.keys() - self._refused.keys()
        for worker, answer in self._connection.ask("bench-survey", self._job, workers=asked).items():
            if reason := answer.refusal or answer.error:
                self._refuse(worker, answer, reason)
                continue
            try:
                resolved = ResolvedStudy.model_validate_json(answer.resolved)
                inventory = Inventory.model_validate_json(answer.inventory)
            except ValidationError as error:
                self._refuse(worker, answer, f"its answer is malformed: {visible_line(first_problem(error)[:300])}")
                continue
            if any(machine.identity == answer.identity for machine in self._there.values()):
                self._refuse(worker, answer, "another worker already measures on this machine")
            elif (resolved.names, resolved.factors) != (self._resolved.names, self._resolved.factors):
                names = visible_line(", ".join(resolved.names)[:1000])
                self._refuse(worker, answer, f"the study has different configurations there: {names}")
            else:
                name = self._name_of(answer)
                self._known[name] = {**summary_of(inventory), "inventory": inventory.model_dump(mode="json")}
                self._there[worker] = _Machine(name, worker, answer.identity, resolved)

    def _name_of(self, answer: Answer) -> str:
        """Return the machine's name; with a number where two machines have the same."""
        names = [answer.where, *(f"{answer.where} ({number})" for number in range(2, len(self._names) + 3))]
        return next(name for name in names if self._names.setdefault(name, answer.identity) == answer.identity)

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
        """Have every machine restore everything, in the middle of a block if need be."""
        with suppress(AjusteError):  # Where the cluster is gone, its workers restore everything by themselves.
            workers = self._connection.workers().keys() - self._refused.keys()
            self._connection.ask("bench-close", self._job, workers=workers)

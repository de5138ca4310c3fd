"""The target ``benches``: machines as they are, each of which measures whole blocks by its own clock."""

from __future__ import annotations

import queue
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from ajuste.design.stopping import Pace, StoppingLimits, on_each
from ajuste.executor.cluster.answer import Answer, observed_in, require
from ajuste.executor.cluster.cluster import taken
from ajuste.executor.cluster.connection import WORKER_SECONDS, Connection, WorkerTask, asked
from ajuste.executor.cluster.wire import Broken, HostJob, read_as
from ajuste.executor.executor import Begun, Executor, TrialDone, TrialRequest
from ajuste.machine.inventory.inventory import Inventory, summary_of
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.event import Hello
from ajuste.model.plan import Plan
from ajuste.model.wording import Say, visible_line
from ajuste.study.resolved import ResolvedStudy

MOST_LOST: Final = 3
"""A block during which so many machines were lost is not begun again: it may be to blame."""

_WAIT_SECONDS = 0.5
_LOOK_EVERY_SECONDS = 3.0


@dataclass(frozen=True)
class _Machine:
    """A worker that measures: ``address`` is what names it, ``resolved`` what the study comes to there."""

    name: str
    address: str
    identity: str
    resolved: ResolvedStudy


class _Block(NamedTuple):
    """Trials that one machine carries out, one after the other: ``machine``, if it must be that one."""

    number: int
    requests: tuple[TrialRequest, ...]
    machine: str


@dataclass
class _Flight:
    """A block on its way to a machine, and back."""

    block: _Block
    machine: _Machine
    plans: tuple[Plan, ...]


class BenchExecutor(Executor):
    """The machines that were offered for measuring (``ajuste cluster worker --bench``), each one block at a time.

    Entering raises RequestError for a cluster that cannot be reached or has no such machine that fits ``resolved``.
    """

    keeps_values = True

    def __init__(
        self, connection: Connection, parcel: HostJob, resolved: ResolvedStudy, say: Say = lambda _: None
    ) -> None:
        self._connection = connection
        self._resolved = resolved
        self._say = say
        self._text = parcel.model_dump_json()
        self._stack = ExitStack()
        self._there: dict[str, _Machine] = {}
        self._known: dict[str, dict[str, Any]] = {}
        self._identities: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._flying: dict[WorkerTask, _Flight] = {}
        self._lost: Counter[int] = Counter()
        self._looked = 0.0
        self._lacking_since: float | None = None

    @property
    def hello(self) -> Hello:
        raise RunError("no single machine stands for many")

    @property
    def environment(self) -> dict[str, str]:
        return {"clock": "wall", "machines": ", ".join(self._known)}

    @property
    def machines(self) -> dict[str, dict[str, Any]]:
        return dict(self._known)

    whole_blocks = True

    @property
    def parallel(self) -> int:
        return max(1, len(self._there))

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._connection.open()
            stack.callback(self._end)
            self._await_machines()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.cancel(list(self._flying))
        self._stack.close()

    def more_blocks(self, pace: Pace, limits: StoppingLimits) -> int:
        return on_each(self.parallel, pace, limits)

    def carry_out(self, requests: Sequence[TrialRequest], begun: Begun) -> Iterator[list[TrialDone]]:
        """One block on each machine at a time, given back whole. What a machine that is lost had begun is begun anew by
        another one. Ends early if the executor is left meanwhile.
        """
        by_block: dict[int, list[TrialRequest]] = {}
        for request in requests:
            by_block.setdefault(request.slot.block, []).append(request)
        waiting = deque(_Block(number, tuple(own), own[0].machine) for number, own in by_block.items())
        ended: queue.SimpleQueue[WorkerTask] = queue.SimpleQueue()
        try:
            while waiting or self._flying:
                self._look(waiting)
                self._send(waiting, ended, begun)
                for task in taken(ended):
                    if (flight := self._flying.pop(task, None)) is None:
                        continue  # Its machine was given up before.
                    if done := self._received(task, flight, waiting):
                        yield done
        finally:
            self._connection.cancel(list(self._flying))
            self._flying.clear()

    def _send(self, waiting: deque[_Block], ended: queue.SimpleQueue[WorkerTask], begun: Begun) -> None:
        """Give each machine that has nothing to do the first block that it may have."""
        busy = {flight.machine.address for flight in self._flying.values()}
        for machine in [one for one in self._there.values() if one.address not in busy]:
            block = next((one for one in waiting if one.machine in ("", machine.name)), None)
            if block is None:
                continue
            waiting.remove(block)
            begun(block.requests[0])
            plans = tuple(request._replace(study=machine.resolved).plan() for request in block.requests)
            task = WorkerTask("bench-carry-out", asked(self._text, plans), ended.put, worker=machine.address)
            self._flying[task] = _Flight(block, machine, plans)
            self._connection.submit([task])
        names = {machine.name for machine in self._there.values()}
        for block in [one for one in waiting if one.machine and one.machine not in names]:
            waiting.remove(block)

    def _received(self, task: WorkerTask, flight: _Flight, waiting: deque[_Block]) -> list[TrialDone]:
        """What was answered; nothing if the block is to be begun anew."""
        answer = task.answer
        if answer is None:
            self._connection.require_alive()
            self._give_up(flight, waiting)
            return []
        if reason := _why_left_out(answer, flight):
            # Such as another experiment that goes on there: others may still measure.
            self._refuse(flight.machine.address, answer, reason)
            waiting.appendleft(flight.block)
            if not self._there:
                raise self._none_fits()
            self._say(f"left out: {self._refused[flight.machine.address]}")
            return []
        require(answer)
        observed = observed_in(flight.plans, answer.done or (), restores=True)
        return [
            TrialDone(request, plan, *own, machine=flight.machine.name)
            for request, plan, own in zip(flight.block.requests, flight.plans, observed, strict=True)
        ]

    def _give_up(self, flight: _Flight, waiting: deque[_Block]) -> None:
        """The machine was lost in the middle of a block: another one begins it anew."""
        self._there.pop(flight.machine.address, None)
        self._say(f"{flight.machine.name} was lost; another machine repeats its block")
        self._lost[flight.block.number] += 1
        if self._lost[flight.block.number] >= MOST_LOST:
            raise RunError(
                f"{MOST_LOST} machines were lost during block {flight.block.number}, the last {flight.machine.name}",
                hint="run the same command to resume; finished trials are kept",
            )
        waiting.appendleft(flight.block)

    def _look(self, waiting: deque[_Block]) -> None:
        """Now and then: which machines are there still, or by now. Raises RunError where none has been for long."""
        self._connection.require_alive()
        if time.monotonic() - self._looked < _LOOK_EVERY_SECONDS:
            return
        addresses = self._benches()
        self._looked = time.monotonic()
        for address in [one for one in self._there if one not in addresses]:
            self._there.pop(address)
        for task, flight in list(self._flying.items()):
            if flight.machine.address not in addresses:
                self._flying.pop(task)
                self._connection.cancel([task])
                self._give_up(flight, waiting)
        self._admit([one for one in addresses if one not in self._there and one not in self._refused])
        if self._there:
            self._lacking_since = None
            return
        self._say("waiting for a machine")
        self._lacking_since = self._lacking_since or self._looked
        if self._looked - self._lacking_since > WORKER_SECONDS:
            raise RunError(
                f"{self._connection.cluster} has lost all machines that measure",
                hint="run the same command to resume; finished trials are kept",
            )

    def _benches(self) -> list[str]:
        return [worker.address for worker in self._connection.workers() if worker.benches]

    def _await_machines(self) -> None:
        deadline = time.monotonic() + WORKER_SECONDS
        while not (addresses := self._benches()):
            if self._connection.workers() or time.monotonic() > deadline:
                raise RequestError(
                    f"{self._connection.cluster} has no worker that measures by the wall clock",
                    hint=f"start them: ajuste cluster worker --bench --scheduler {self._connection.cluster.address}",
                )
            self._say("waiting for a worker")
            time.sleep(_WAIT_SECONDS)
        self._say("checking the machines")
        self._admit(addresses)
        self._looked = time.monotonic()
        if not self._there:
            raise self._none_fits()
        if self._refused:
            self._say(f"left out: {self._refusals()}")

    def _admit(self, addresses: Iterable[str]) -> None:
        """Ask workers whether their machine can measure the study."""
        answers = self._connection.ask("bench-survey", asked(self._text), workers=list(addresses))
        for address, answer in answers.items():
            if answer.refusal:
                self._refuse(address, answer, answer.refusal)
                continue
            try:
                there = _surveyed(answer)
            except Broken as broken:
                self._connection.ban(address, str(broken))
                self._refuse(address, answer, str(broken))
                continue
            if reason := self._why_not(answer, there.resolved):
                self._refuse(address, answer, reason)
                continue
            name = self._name_of(answer)
            self._known[name] = there.machine
            self._there[address] = _Machine(name, address, answer.identity, there.resolved)

    def _why_not(self, answer: Answer, there: ResolvedStudy) -> str:
        if any(machine.identity == answer.identity for machine in self._there.values()):
            return "another worker already measures on this machine"
        if (there.names, there.factors) != (self._resolved.names, self._resolved.factors):
            return f"the study has different configurations there: {visible_line(', '.join(there.names)[:1000])}"
        return ""

    def _name_of(self, answer: Answer) -> str:
        """The machine's own name; with a number where two machines have the same."""
        for name, identity in self._identities.items():
            if identity == answer.identity:
                return name
        name, number = answer.where, 1
        while name in self._identities:
            number += 1
            name = f"{answer.where} ({number})"
        self._identities[name] = answer.identity
        return name

    def _refuse(self, address: str, answer: Answer, reason: str) -> None:
        self._there.pop(address, None)
        self._refused[address] = f"{address} ({answer.where}): {reason}"

    def _refusals(self) -> str:
        return "; ".join(self._refused.values())

    def _none_fits(self) -> RequestError:
        return RequestError(
            f"no machine of {self._connection.cluster} can measure this study: {self._refusals()}",
            hint="check what each machine needs: `ajuste help several-machines`",
        )

    def _end(self) -> None:
        """Have every machine put everything back, in the middle of a block if need be."""
        try:
            addresses = [address for address in self._benches() if address not in self._refused]
            self._connection.ask("bench-close", asked(self._text), workers=addresses)
        except AjusteError:
            return  # The cluster is gone: its workers put everything back by themselves.


class _Surveyed(NamedTuple):
    resolved: ResolvedStudy
    machine: dict[str, Any]


def _surveyed(answer: Answer) -> _Surveyed:
    """What a machine says of itself. Raises Broken."""
    resolved = read_as(ResolvedStudy, answer.resolved.encode(), "its resolved study")
    inventory = read_as(Inventory, answer.inventory.encode(), "its inventory")
    return _Surveyed(resolved, {**summary_of(inventory), "inventory": inventory.model_dump(mode="json")})


def _why_left_out(answer: Answer, flight: _Flight) -> str:
    """Why the block is not done and the machine not asked again, if so."""
    if answer.error is not None:
        return answer.error if answer.wrong else ""
    if answer.refusal:
        return answer.refusal
    return "" if len(answer.done or ()) == len(flight.plans) else "its answer does not match the request"

"""The coordinator's end of a cluster: which workers there are, what each is asked, and what came of it.

All that is said is read in a thread of its own, so that workers never wait for the store.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Self

from ajuste.executor.cluster.answer import Answer, WorkRequest
from ajuste.executor.cluster.channel import Channel, open_channel
from ajuste.executor.cluster.wire import (
    Broken,
    Header,
    Introduction,
    Peer,
    Roster,
    What,
    Worker,
    connected,
    expect_losses,
    read_as,
)
from ajuste.machine.home import Home
from ajuste.model.error import RunError
from ajuste.model.wording import Say

WORKER_SECONDS: Final = 60.0
"""So long a cluster may be without any worker before the run ends."""
ANSWER_SECONDS: Final = 120.0
"""So long a worker may take for what takes no trial."""
MOST_LOSSES: Final = 4
"""Plans during which so many workers were lost are not given to another one: they may be to blame."""


@dataclass(frozen=True)
class Cluster:
    """Where trials are carried out: by the workers of a scheduler, or by ``workers`` of this machine."""

    channel: Channel | None = None
    workers: int = 0

    @property
    def address(self) -> str:
        return self.channel.address if self.channel else ""

    def __str__(self) -> str:
        return f"the cluster {self.address}" if self.channel else f"{self.workers} workers on this machine"


@dataclass(eq=False)
class WorkerTask:
    """What one worker is asked: ``worker``, or any that is free, not one of ``but`` and not where ``twin`` is.

    When it is over, ``answer`` is there, or it was lost with its workers; ``by`` had it last.
    """

    what: What
    body: bytes
    done: Callable[[WorkerTask], object]
    worker: str = ""
    but: frozenset[str] = frozenset()
    twin: WorkerTask | None = None
    metered: bool = True
    limit_s: float = 0.0
    answer: Answer | None = None
    by: str = ""
    losses: int = 0
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)


class Connection:
    """Opened at its first use; leaving closes it, and ends workers that were started for it."""

    def __init__(self, cluster: Cluster, home: Home, say: Say) -> None:
        self._cluster = cluster
        self._home = home
        self._say = say
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._leaving: asyncio.Event | None = None
        self._peer: Peer | None = None
        self._ended = ""
        self._numbers = itertools.count(1)
        self._workers: dict[str, Worker] = {}
        self._banned: dict[str, str] = {}
        self._waiting: deque[WorkerTask] = deque()
        self._flying: dict[int, WorkerTask] = {}
        self._busy: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._loop is not None and self._thread is not None and self._leaving is not None:
            self._loop.call_soon_threadsafe(self._leaving.set)
            self._thread.join()
            self._thread = None

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    @property
    def banned(self) -> dict[str, str]:
        """Workers that are asked nothing any more, with the reason."""
        return dict(self._banned)

    def open(self) -> None:
        """Connect, if that is not done yet. Raises RequestError for a cluster that does not answer."""
        if self._thread is not None:
            return
        self._say(f"connecting to {self._cluster.address}" if self._cluster.channel else f"starting {self._cluster}")
        opened: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live(opened)), name="cluster", daemon=True)
        self._thread.start()
        try:
            opened.result()
        except BaseException:
            if opened.done():
                self._thread = None
            raise

    async def _live(self, opened: Future[None]) -> None:
        self._loop, self._leaving = asyncio.get_running_loop(), asyncio.Event()
        local: Any = None
        attending: asyncio.Task[None] | None = None
        introduction = Introduction(role="coordinator")
        expect_losses()
        try:
            if self._cluster.channel is not None:
                self._peer = await open_channel(self._cluster.channel, introduction)
            else:
                from ajuste.executor.cluster.scheduler import Scheduler
                from ajuste.executor.cluster.serving import LocalWorkers

                scheduler, (ours, theirs) = Scheduler(), socket.socketpair()
                local = LocalWorkers(scheduler, self._home, self._cluster.workers)
                attending = asyncio.create_task(scheduler.attend(await connected(theirs), "coordinator here"))
                self._peer = await connected(ours)
                self._peer.send(Header(kind="hello"), introduction.model_dump_json().encode())
                await local.start()
        except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
            opened.set_exception(error)
            return
        hearing = asyncio.create_task(self._hear())
        beating = asyncio.create_task(self._peer.beat())
        opened.set_result(None)
        await self._leaving.wait()
        for task in (hearing, beating):
            task.cancel()
        await self._peer.close()
        if local is not None:
            await local.end()
        if attending is not None:
            await attending

    async def _hear(self) -> None:
        assert self._peer is not None
        try:
            while (said := await self._peer.receive()) is not None:
                self._heed(*said)
            self._ended = "the connection was closed"
        except Broken as broken:
            self._ended = str(broken)
        for task in [*self._flying.values(), *self._waiting]:
            self._over(task)

    def _heed(self, header: Header, body: bytes) -> None:
        match header.kind:
            case "roster":
                self._workers = {one.address: one for one in read_as(Roster, body, "the list of workers").workers}
                for task in [one for one in self._waiting if one.worker and one.worker not in self._workers]:
                    self._waiting.remove(task)
                    self._over(task)
                self._dispatch()
            case "answer":
                self._answered(header.number, body)
            case "lost":
                self._lost(header.number)
            case "refused":
                raise Broken(body[:500].decode("ascii", "backslashreplace"))
            case "welcome" | "beat":
                pass
            case kind:
                raise Broken(f"unexpected message {kind} from a scheduler")

    def _answered(self, number: int, body: bytes) -> None:
        task = self._landed(number)
        if task is None:
            return
        try:
            task.answer = read_as(Answer, body, "its answer")
        except Broken as broken:
            self._ban(task.by, str(broken))
            self._again(task, counts=False)
        else:
            task.done(task)
        self._dispatch()

    def _lost(self, number: int) -> None:
        task = self._landed(number)
        if task is not None:
            self._again(task)
            self._dispatch()

    def _again(self, task: WorkerTask, *, counts: bool = True) -> None:
        """Give to another worker what one did not answer, unless it was for that one alone."""
        task.losses += counts and task.metered
        if task.worker or task.losses >= MOST_LOSSES:
            self._over(task)
        else:
            task.by = ""
            self._waiting.appendleft(task)

    def _over(self, task: WorkerTask) -> None:
        if task.timer is not None:
            task.timer.cancel()
        task.done(task)

    def _landed(self, number: int) -> WorkerTask | None:
        task = self._flying.pop(number, None)
        if task is None:
            return None  # It was cancelled, or its worker was too late.
        if task.timer is not None:
            task.timer.cancel()
        if task.metered:
            self._busy[task.by] -= 1
        return task

    def _dispatch(self) -> None:
        """Give what waits to free workers, the least busy first."""
        if not self._waiting:
            return
        free = sorted(
            (self._busy[one.address] / one.threads, one.address)
            for one in self._workers.values()
            if one.address not in self._banned and self._busy[one.address] < one.threads
        )
        for _, address in free:
            while self._busy[address] < self._workers[address].threads:
                task = next((one for one in self._waiting if _may(one, address)), None)
                if task is None:
                    break
                self._waiting.remove(task)
                self._ask(task, address)

    def _ask(self, task: WorkerTask, address: str) -> None:
        assert self._peer is not None
        assert self._loop is not None
        number = next(self._numbers)
        task.by = address
        self._flying[number] = task
        self._busy[address] += task.metered
        if task.limit_s:
            task.timer = self._loop.call_later(task.limit_s, self._too_late, number)
        self._peer.send(Header(kind="request", number=number, worker=address, what=task.what), task.body)

    def _too_late(self, number: int) -> None:
        if number in self._flying:
            task = self._flying[number]
            self._ban(task.by, f"it did not answer within {task.limit_s:g} s")
            self._lost(number)

    def _ban(self, address: str, reason: str) -> None:
        if address not in self._banned:
            self._banned[address] = reason
            self._say(f"left out: {address}: {reason}")
        for number in [number for number, task in self._flying.items() if task.by == address]:
            if (task := self._landed(number)) is not None:
                self._again(task, counts=False)

    def ban(self, address: str, reason: str) -> None:
        """Ask that worker nothing any more. What it has under way is given to others."""

        def leave_out() -> None:
            self._ban(address, reason)
            self._dispatch()

        self._run(leave_out)

    def workers(self) -> list[Worker]:
        """Those that there are now, and are asked. Raises RunError where the scheduler does not answer any more."""
        self.require_alive()
        return [one for one in self._workers.values() if one.address not in self._banned]

    def submit(self, tasks: Sequence[WorkerTask]) -> None:
        """Have ``tasks`` carried out; each is told that it is ``done``, in another thread, however it ended."""

        def enqueue() -> None:
            for task in tasks:
                if self._ended or (task.worker and (task.worker not in self._workers or task.worker in self._banned)):
                    task.done(task)
                elif task.worker and not task.metered:
                    self._ask(task, task.worker)
                else:
                    self._waiting.append(task)
            self._dispatch()

        self._run(enqueue)

    def ask(self, what: What, body: bytes, *, workers: Sequence[str]) -> dict[str, Answer]:
        """What each of ``workers`` answers, beside whatever it does. One that is lost meanwhile or does not keep to the
        protocol, does not answer.
        """
        self.require_alive()
        left = threading.Semaphore(0)
        tasks = [
            WorkerTask(what, body, lambda _: left.release(), worker=one, metered=False, limit_s=ANSWER_SECONDS)
            for one in workers
        ]
        self.submit(tasks)
        for _ in tasks:
            left.acquire()
        return {task.worker: task.answer for task in tasks if task.answer is not None}

    def cancel(self, tasks: Sequence[WorkerTask]) -> None:
        """Forget about ``tasks``. What has not begun is not begun."""

        def forget() -> None:
            for task in tasks:
                with suppress(ValueError):
                    self._waiting.remove(task)
            for number, task in list(self._flying.items()):
                if task in tasks:
                    self._landed(number)
                    if self._peer is not None:
                        self._peer.send(Header(kind="cancel", number=number, worker=task.by))

        if tasks and not self._ended:
            self._run(forget)

    def require_alive(self) -> None:
        """Raises RunError if the scheduler is gone."""
        if self._thread is None or self._ended:
            raise RunError(
                f"{self._cluster} was lost during the run: {self._ended or 'disconnected'}",
                hint="run the same command to resume; finished trials are kept",
            )

    def _run(self, work: Callable[[], object]) -> None:
        if self._loop is not None and self._thread is not None:
            with suppress(RuntimeError):  # The loop has ended: so has everything in it.
                self._loop.call_soon_threadsafe(work)


def _may(task: WorkerTask, address: str) -> bool:
    if task.worker:
        return task.worker == address
    return address not in task.but and not (task.twin is not None and task.twin.by == address)


def asked(parcel: str, plans: Sequence[Any] = ()) -> bytes:
    """The body of a request."""
    return WorkRequest(parcel=parcel, plans=tuple(plans)).model_dump_json().encode()

"""Being a worker: this process carries out plans for a scheduler until that one, or a person, ends it."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ajuste.executor.cluster.answer import Answer, WorkRequest, failure, from_here, piece_of
from ajuste.executor.cluster.channel import Channel, open_channel
from ajuste.executor.cluster.scheduler import Scheduler
from ajuste.executor.cluster.wire import Broken, Header, Introduction, Peer, What, connected, expect_losses, read_as
from ajuste.machine.home import Home
from ajuste.model.error import AjusteError, RunError
from ajuste.model.wording import Say

if TYPE_CHECKING:
    from ajuste.executor.cluster.bench import Bench
    from ajuste.executor.cluster.workplace import Workplace


# Workers of this machine: processes that hold one end of a socket pair each. Nobody else can reach them, and nothing
# listens anywhere.


MOST_LOST: Final = 20
"""After so many lost workers no more are started: something is wrong that another one does not mend."""

_LOADED: Final = ("ajuste.cli.main", "ajuste.executor.cluster.workplace", "ajuste.executor.cluster.serving")


def begin_nursery() -> None:
    """Start the process that workers are forked from, in which what they all need is loaded once. Does not wait."""
    from multiprocessing import forkserver, set_forkserver_preload  # Takes long to load, and few come here.

    set_forkserver_preload(list(_LOADED))
    # It is started with -c, and would import modules of the present directory, which may be a stranger's.
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONSAFEPATH"]
        if before is not None:
            os.environ["PYTHONSAFEPATH"] = before


class LocalWorkers:
    """``count`` workers that belong to a scheduler of this process; one that is lost is started again."""

    def __init__(self, scheduler: Scheduler, home: Home, count: int) -> None:
        self._scheduler = scheduler
        self._home = home
        self._count = count
        self._numbers = itertools.count(1)
        self._processes: list[Any] = []
        self._attending: set[asyncio.Task[None]] = set()
        self._lost = 0
        self._ended = False

    async def start(self) -> None:
        begin_nursery()
        for _ in range(self._count):
            await self._start_one()

    async def _start_one(self) -> None:
        from multiprocessing import get_context

        ours, theirs = socket.socketpair()
        with theirs:
            process = get_context("forkserver").Process(target=work_below, args=(theirs, self._home), daemon=True)
            await asyncio.to_thread(process.start)
        self._processes.append(process)
        task = asyncio.create_task(self._attend(ours, f"worker {next(self._numbers)} here"))
        self._attending.add(task)
        task.add_done_callback(self._attending.discard)

    async def _attend(self, ours: socket.socket, name: str) -> None:
        await self._scheduler.attend(await connected(ours), name, "worker")
        self._lost += 1
        if not self._ended and self._lost <= MOST_LOST:
            await self._start_one()

    async def end(self) -> None:
        """Closing their connections ends them, and with them all that runs there; returns when it has."""
        self._ended = True
        for task in list(self._attending):
            task.cancel()
        await asyncio.gather(*self._attending, return_exceptions=True)
        for process in self._processes:
            await asyncio.to_thread(process.join, 30)
            if process.exitcode is None:
                process.kill()


_QUICK: frozenset[What] = frozenset({"survey", "receive", "close", "bench-survey", "bench-close"})
"""What is done beside the plans."""


def serve(channel: Channel, home: Home, say: Say, *, threads: int | None = None, bench: bool = False) -> None:
    """Carry out ``threads`` plans at once (as many as CPUs if not given) until the scheduler ends. As a ``bench`` also
    trials by the clock of this machine, and never two plans at once. Raises RequestError where it cannot be reached,
    RunError when it is gone.
    """
    count = 1 if bench else threads or len(os.sched_getaffinity(0))
    duties = Duties(home, bench=bench)
    try:
        ended = asyncio.run(_serve(channel, say, count, duties))
    finally:
        duties.close_all()
    if not ended:
        raise KeyboardInterrupt
    raise RunError(f"lost the scheduler {channel.address}: {ended}")


async def _serve(channel: Channel, say: Say, threads: int, duties: Duties) -> str:
    """Why the connection ended; empty where a person ended it."""
    expect_losses()
    peer = await open_channel(channel, Introduction(role="worker", threads=threads, benches=duties.benches))
    own = "this machine, one block at a time" if duties.benches else f"{threads} thread{'s' if threads > 1 else ''}"
    say(f"working for {channel.address} with {own}")
    working = asyncio.create_task(Working(peer, duties, threads).until_ended())
    interrupted = asyncio.create_task(_interruption())
    await asyncio.wait((working, interrupted), return_when=asyncio.FIRST_COMPLETED)
    # Threads are not waited for: their guests are ended next.
    peer.cut()
    return working.result() if working.done() else ""


async def _interruption() -> None:
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    await interrupted.wait()


def work_below(connection: socket.socket, home: Home) -> None:
    """Be a worker of the coordinator that started this process, and holds the other end of ``connection``."""
    # Ctrl-C at the terminal is the coordinator's; a handler, because what is started from here does not inherit it.
    signal.signal(signal.SIGINT, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    duties = Duties(home)

    async def working() -> None:
        expect_losses()
        peer = await connected(connection)
        peer.send(Header(kind="hello"), Introduction(role="worker").model_dump_json().encode())
        await Working(peer, duties, 1).until_ended()

    try:
        asyncio.run(working())
    finally:
        duties.close_all()
        os._exit(0)  # A thread that still waits for its guest has nobody to tell any more.


class Working:
    """One connection of a worker, from its ``welcome`` on."""

    def __init__(self, peer: Peer, duties: Duties, threads: int) -> None:
        self._peer = peer
        self._duties = duties
        self._plans: Executor = _pool(threads, "plan")
        self._quick: Executor = _pool(4, "quick")
        self._under_way: dict[int, tuple[int, asyncio.Task[None]]] = {}

    async def until_ended(self) -> str:
        """Why the connection ended."""
        beating = asyncio.create_task(self._peer.beat())
        try:
            while (said := await self._peer.receive()) is not None:
                header, body = said
                if header.kind == "refused":
                    return body[:500].decode("ascii", "backslashreplace")
                self._hear(header, body)
        except Broken as broken:
            return str(broken)
        finally:
            beating.cancel()
            for _, task in self._under_way.values():
                task.cancel()
        return "the connection was closed"

    def _hear(self, header: Header, body: bytes) -> None:
        match header.kind:
            case "request":
                task = asyncio.create_task(self._answer(header, body))
                self._under_way[header.number] = (header.coordinator, task)
            case "cancel":
                self._drop(header.number)
            case "gone":
                for number in [one for one, (whose, _) in self._under_way.items() if whose == header.coordinator]:
                    self._drop(number)
                self._do(self._quick, lambda: self._duties.forget(header.coordinator))
            case "welcome" | "beat":
                pass
            case kind:
                raise Broken(f"unexpected message {kind} from a scheduler")

    def _drop(self, number: int) -> None:
        """What has not begun yet is not begun; the rest ends, and nobody is told."""
        _, task = self._under_way.pop(number, (0, None))
        if task is not None:
            task.cancel()

    async def _answer(self, header: Header, body: bytes) -> None:
        pool = self._quick if header.what in _QUICK else self._plans
        answer = await self._do(pool, lambda: self._duties.do(header.what, body, header.coordinator))
        self._peer.send(Header(kind="answer", number=header.number), answer.model_dump_json().encode())
        self._under_way.pop(header.number, None)

    def _do(self, pool: Executor, work: Callable[[], Any]) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().run_in_executor(pool, work)


def _pool(threads: int, name: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix=name)


# What a worker does when it is asked. What was asked wrongly is refused; nothing is raised.


class Duties:
    """Those of one process. Only what ``benches`` measures by its machine's clock, and only then settings of this
    machine are changed.
    """

    def __init__(self, home: Home, *, bench: bool = False) -> None:
        self.benches = bench
        self._home = home
        self._lock = threading.Lock()
        self._parcels: dict[int, set[str]] = {}

    @cached_property
    def _workplace(self) -> Workplace:
        from ajuste.executor.cluster.workplace import Workplace

        return Workplace(self._home)

    @cached_property
    def _bench(self) -> Bench:
        from ajuste.executor.cluster.bench import Bench, on_this_machine

        return Bench(on_this_machine(self._home))

    def do(self, what: What, body: bytes, coordinator: int = 0) -> Answer:
        try:
            if what == "receive":
                return self._workplace.receive(piece_of(body))
            asked = read_as(WorkRequest, body, "the request")
            if what.startswith("bench") and not self.benches:
                return from_here(refusal="it was not started with --bench")
            if what == "bench-carry-out":
                with self._lock:
                    self._parcels.setdefault(coordinator, set()).add(asked.parcel)
            return self._duty(what)(asked)
        except Broken as broken:
            return from_here(refusal=f"{broken}"[:2000])
        except AjusteError as error:
            return failure(error)
        except Exception as error:  # noqa: BLE001 - whoever asked would wait for ever
            return failure(RunError(f"the worker cannot go on: {type(error).__name__}: {error}"))

    def _duty(self, what: What) -> Callable[[WorkRequest], Answer]:
        match what:
            case "survey":
                return lambda asked: self._workplace.survey(asked.parcel)
            case "open":
                return lambda asked: self._workplace.open(asked.parcel)
            case "carry-out":
                return lambda asked: self._workplace.carry_out(asked.parcel, asked.plans)
            case "close":
                return lambda asked: self._workplace.close(asked.parcel)
            case "bench-survey":
                return lambda asked: self._bench.survey(asked.parcel)
            case "bench-carry-out":
                return lambda asked: self._bench.carry_out(asked.parcel, asked.plans)
            case "bench-close":
                return lambda asked: self._bench.close_of(asked.parcel)
            case _:
                raise Broken(f"unknown request: {what!r}")

    def forget(self, coordinator: int) -> None:
        """It is gone: what it had measured here is put back."""
        with self._lock:
            parcels = self._parcels.pop(coordinator, set())
        for parcel in parcels:
            self._bench.close_of(parcel)

    def close_all(self) -> None:
        """End all machines, and put everything back."""
        if "_workplace" in self.__dict__:
            self._workplace.close_all()
        if "_bench" in self.__dict__:
            self._bench.close()

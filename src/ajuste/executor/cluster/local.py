"""Workers of this machine: processes that hold one end of a socket pair each. Nobody else can reach them, and nothing
listens anywhere.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from typing import Any, Final

from ajuste.executor.cluster.scheduler import Scheduler
from ajuste.executor.cluster.serving import work_below
from ajuste.executor.cluster.wire import connected
from ajuste.machine.home import Home

MOST_LOST: Final = 20
"""After so many lost workers no more are started: something is wrong that another one does not mend."""

_LOADED: Final = ("ajuste.cli.main", "ajuste.executor.cluster.workplace", "ajuste.executor.cluster.local")


def begin_nursery() -> None:
    """Start the process that workers are forked from, in which what they all need is loaded once. Does not wait."""
    from multiprocessing import forkserver, set_forkserver_preload  # Takes long to load, and few come here.

    set_forkserver_preload(list(_LOADED))
    forkserver.ensure_running()


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

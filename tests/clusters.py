"""A Dask scheduler in a thread of the tests, with workers that a test plays."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import distributed
from distributed.diagnostics.plugin import WorkerPlugin

from ajuste.model.cluster import KEY, Cluster
from ajuste.model.event import Hello
from ajuste_fleet.cluster.connection import Connection
from ajuste_fleet.cluster.keys import security as security_of
from ajuste_fleet.cluster.messages import Answer, Ask, GuestJob
from ajuste_fleet.cluster.worker import NAME

PATIENCE_SECONDS = 60

JOB = GuestJob(
    ajuste="1",
    qemu="10.0.2",
    spec="debian:5.10",
    release="5.10.0",
    package="",
    kernel=hashlib.sha256(b"kernel").hexdigest(),
    initramfs=hashlib.sha256(b"initramfs").hexdigest(),
    clock="virtual",
    cpus=1,
    memory_mib=256,
    seed=1,
    instruction_ns=2,
)
HELLO = Hello(at_ns=0, version=1, agent="0", kernel="5.10", build="", machine="", cpus=1, memory_bytes=1, guest=True)


class Played(Protocol):
    """Answers of a test's worker."""

    def answer(self, ask: Ask, job: str, body: bytes) -> Answer: ...


class _Station(WorkerPlugin):
    def __init__(self, played: Played) -> None:
        self._played = played

    def setup(self, worker: distributed.Worker) -> None:
        self._address = worker.address

    def do(self, ask: Ask, job: str, body: bytes) -> bytes:
        answered = self._played.answer(ask, job, body)
        return answered.model_copy(update={"worker": self._address}).model_dump_json().encode()


class Lab:
    """A scheduler on the loopback interface."""

    def __init__(self, keys: Path | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._scheme = "tls" if keys else "tcp"
        self._key = keys / KEY if keys else None
        self._workers: list[distributed.Worker] = []
        self._scheduler = self.run(self._started())
        port = int(self._scheduler.address.rpartition(":")[2])
        self.cluster = Cluster(f"{self._scheme}://127.0.0.1:{port}", "127.0.0.1", port, self._key)

    async def _started(self) -> distributed.Scheduler:
        security = security_of(Cluster("", "", 0, self._key))
        return await distributed.Scheduler(
            host="127.0.0.1", port=0, protocol=self._scheme, security=security, dashboard_address="127.0.0.1:0"
        )

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def worker(self, played: Played | None, threads: int = 1) -> distributed.Worker:
        """Start a worker that does what ``played`` does, or nothing of Ajuste's."""

        async def start() -> distributed.Worker:
            security = security_of(self.cluster)
            worker = await distributed.Worker(
                self.cluster.address, nthreads=threads, security=security, dashboard_address="127.0.0.1:0"
            )
            if played is not None:
                await worker.plugin_add(_Station(played), NAME)
            return worker

        worker: distributed.Worker = self.run(start())
        self._workers.append(worker)
        return worker

    def cut(self, worker: distributed.Worker) -> None:
        """Lose ``worker``, as if its machine had been switched off. Does not wait."""
        lost = self._scheduler.remove_worker(address=worker.address, stimulus_id="test", close=True)
        asyncio.run_coroutine_threadsafe(lost, self._loop)

    def drop_all(self) -> None:
        """Make the scheduler forget all tasks, as when somebody else restarts it."""

        async def drop() -> None:
            for name in list(self._scheduler.clients):
                keys = [task.key for task in self._scheduler.clients[name].wants_what]
                self._scheduler.report({"op": "cancelled-keys", "keys": keys}, client=name)

        self.run(drop())

    @property
    def connection(self) -> Connection:
        return Connection(self.cluster, lambda _: None)

    def close(self) -> None:
        async def end() -> None:
            await asyncio.gather(*(worker.close(executor_wait=False) for worker in self._workers))
            await self._scheduler.close()

        if self._thread.is_alive():
            self.run(end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


def wait_for(happens: Callable[[], object]) -> None:
    pause = threading.Event()
    for _ in range(PATIENCE_SECONDS * 50):
        if happens():
            return
        pause.wait(0.02)
    raise AssertionError("it did not happen")


@contextmanager
def lab(keys: Path | None = None) -> Iterator[Lab]:
    opened = Lab(keys)
    try:
        yield opened
    finally:
        opened.close()

"""A scheduler in a thread of the tests, with workers that a test plays or that break the rules."""

from __future__ import annotations

import asyncio
import hashlib
import re
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from ajuste.executor.cluster.answer import Answer
from ajuste.executor.cluster.channel import Channel, open_channel
from ajuste.executor.cluster.connection import Cluster, Connection
from ajuste.executor.cluster.scheduler import Scheduler
from ajuste.executor.cluster.serving import Working
from ajuste.executor.cluster.wire import GuestJob, Header, Introduction, Peer, What, frame
from ajuste.machine.home import home
from ajuste.model.event import Hello

PATIENCE_SECONDS = 60

PARCEL = GuestJob(
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


class PlayedDuties(Protocol):
    """As ``Duties``, for what a test plays."""

    def do(self, what: What, body: bytes, coordinator: int = 0) -> Answer: ...

    def forget(self, coordinator: int) -> None: ...


class Lab:
    """A scheduler on the loopback interface, and what it ``said``."""

    def __init__(self, keys: Path | None = None) -> None:
        self.said: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        scheme = "tls" if keys else "tcp"
        context = Channel("", "", 0, keys).context("scheduler")
        self._loop.call_soon_threadsafe(lambda: self._loop.set_exception_handler(lambda *_: None))
        self._server = self.run(Scheduler(self.said.append).listen("127.0.0.1", 0, context))
        self.port = int(self._server.sockets[0].getsockname()[1])
        self.channel = Channel(f"{scheme}://127.0.0.1:{self.port}", "127.0.0.1", self.port, keys)
        self._peers: list[Peer] = []
        self._closed = False

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def worker(self, duties: PlayedDuties, threads: int = 1, *, benches: bool = False) -> Peer:
        """One that is played by this process; the connection is what comes back."""
        introduction = Introduction(role="worker", threads=threads, benches=benches)
        before = len(self._known_workers)

        async def start() -> Peer:
            peer = await open_channel(self.channel, introduction)
            working = Working(peer, duties, threads)  # type: ignore[arg-type]
            peer.task = asyncio.create_task(working.until_ended())  # type: ignore[attr-defined]
            return peer

        peer: Peer = self.run(start())
        self._peers.append(peer)
        wait_for(lambda: len(self._known_workers) > before)
        return peer

    @property
    def _known_workers(self) -> list[str]:
        return [one for one in self.said if re.fullmatch("worker .* connected", one)]

    def await_said(self, words: str) -> str:
        """What the scheduler says that has those words."""
        wait_for(lambda: any(words in one for one in self.said))
        return next(one for one in self.said if words in one)

    def cut(self, peer: Peer) -> None:
        self._loop.call_soon_threadsafe(peer.cut)

    @property
    def connection(self) -> Connection:
        return Connection(Cluster(self.channel), home(), lambda _: None)

    def stranger(self, *said: bytes) -> socket.socket:
        """A plain connection that has said that."""
        plain = socket.create_connection(("127.0.0.1", self.port), PATIENCE_SECONDS)
        for one in said:
            plain.sendall(one)
        return plain

    def close(self) -> None:
        if self._closed:
            return

        async def end() -> None:
            self._server.close()
            for peer in self._peers:
                peer.cut()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._closed = True


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


def said_as(header: Header, body: bytes = b"") -> bytes:
    """The bytes of a frame."""
    return b"".join(frame(header, body))


def hello(role: str, **more: Any) -> bytes:
    introduction = Introduction(role=role, **more)  # type: ignore[arg-type]
    return said_as(Header(kind="hello"), introduction.model_dump_json().encode())

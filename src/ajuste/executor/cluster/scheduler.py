"""The scheduler: it brings coordinators and workers together, and knows of what they say to each other only headers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import ssl
import time
from dataclasses import dataclass, field
from typing import Any, Final

from ajuste.executor.cluster.answer import LARGEST_REQUEST
from ajuste.executor.cluster.channel import Channel, role_in
from ajuste.executor.cluster.wire import (
    HELLO_SECONDS,
    LARGEST_BODY,
    Broken,
    Header,
    Introduction,
    Peer,
    Role,
    Roster,
    Worker,
    expect_losses,
    read_as,
)
from ajuste.model.error import RequestError
from ajuste.model.wording import Say

MOST_PEERS: Final = 8192
MOST_UNKNOWN: Final = 256
"""So many may be connected that have not yet said who they are."""
MOST_REQUESTS: Final = 20_000
"""So many may be under way for one coordinator."""
_MOST_BEATS_PER_SECOND: Final = 2.0


@dataclass(eq=False)
class _Known:
    """A peer that said who it is. ``asked`` are requests that a worker has not answered: whose, and its number."""

    peer: Peer
    address: str
    introduction: Introduction
    number: int
    asked: dict[int, tuple[_Known, int]] = field(default_factory=dict)
    under_way: int = 0
    beats: int = 0
    since: float = field(default_factory=time.monotonic)

    @property
    def worker(self) -> Worker:
        return Worker(address=self.address, threads=self.introduction.threads, benches=self.introduction.benches)

    def count_beat(self) -> None:
        """Raises Broken for more than any honest peer sends."""
        self.beats += 1
        if self.beats > 10 + _MOST_BEATS_PER_SECOND * (time.monotonic() - self.since):
            raise Broken("it sends too many messages")


class Scheduler:
    """Passes requests on to workers, and their answers back. All of it runs in one event loop."""

    def __init__(self, say: Say = lambda _: None) -> None:
        self._say = say
        self._workers: dict[str, _Known] = {}
        self._coordinators: dict[int, _Known] = {}
        self._numbers = itertools.count(1)
        self._unknown = 0

    async def attend(self, peer: Peer, address: str, role: Role | None = None) -> None:
        """One peer, until it ends. ``role`` is what its certificate says that it is, if it has one."""
        known: _Known | None = None
        try:
            known = await self._introduced(peer, address, role)
            beating = asyncio.create_task(peer.beat())
            try:
                self._welcome(known)
                largest = LARGEST_BODY if known.introduction.role == "worker" else LARGEST_REQUEST
                while (said := await peer.receive(largest=largest)) is not None:
                    self._pass_on(known, *said)
            finally:
                beating.cancel()
        except Broken as broken:
            self._say(f"disconnected {address}: {broken}")
            peer.send(Header(kind="refused"), str(broken).encode())
        finally:
            if known is not None:
                self._forget(known)
            await peer.close()

    async def _introduced(self, peer: Peer, address: str, role: Role | None) -> _Known:
        if self._unknown >= MOST_UNKNOWN or len(self._workers) + len(self._coordinators) >= MOST_PEERS:
            raise Broken("there are too many connections already")
        self._unknown += 1
        try:
            said = await peer.receive(silence_s=HELLO_SECONDS, largest=LARGEST_REQUEST >> 10)
        finally:
            self._unknown -= 1
        if said is None:
            raise Broken("it disconnected without an introduction")
        header, body = said
        if header.kind != "hello":
            raise Broken(f"it began with {header.kind}, not hello")
        introduction = read_as(Introduction, body, "its hello (is it another version of Ajuste?)")
        if role is not None and introduction.role != role:
            raise Broken(f"its certificate is for a {role}, but it introduced itself as a {introduction.role}")
        return _Known(peer, address, introduction, next(self._numbers))

    def _welcome(self, known: _Known) -> None:
        known.peer.send(Header(kind="welcome"))
        if known.introduction.role == "worker":
            self._workers[known.address] = known
            self._say(f"worker {known.address} connected")
            self._tell_roster(self._coordinators.values())
        else:
            self._coordinators[known.number] = known
            self._say(f"coordinator {known.address} connected")
            self._tell_roster([known])

    def _tell_roster(self, coordinators: Any) -> None:
        roster = Roster(workers=tuple(one.worker for one in self._workers.values())).model_dump_json().encode()
        for one in coordinators:
            one.peer.send(Header(kind="roster"), roster)

    def _pass_on(self, known: _Known, header: Header, body: bytes) -> None:
        match known.introduction.role, header.kind:
            case _, "beat":
                known.count_beat()
            case "worker", "answer":
                asker, number = known.asked.pop(header.number, (None, 0))
                if asker is None:
                    raise Broken("it answered a request that was not sent")
                asker.under_way -= 1
                asker.peer.send(Header(kind="answer", number=number), body)
            case "coordinator", "request":
                self._ask(known, header, body)
            case "coordinator", "cancel":
                self._cancel(known, header)
            case role, kind:
                raise Broken(f"unexpected message {kind} from a {role}")

    def _ask(self, asker: _Known, header: Header, body: bytes) -> None:
        if asker.under_way >= MOST_REQUESTS:
            raise Broken(f"it sent more than {MOST_REQUESTS} requests at once")
        worker = self._workers.get(header.worker)
        if worker is None:
            asker.peer.send(Header(kind="lost", number=header.number))
            return
        number = next(self._numbers)
        worker.asked[number] = (asker, header.number)
        asker.under_way += 1
        worker.peer.send(Header(kind="request", number=number, coordinator=asker.number, what=header.what), body)

    def _cancel(self, asker: _Known, header: Header) -> None:
        worker = self._workers.get(header.worker)
        if worker is None:
            return
        for number, (whose, own) in worker.asked.items():
            if whose is asker and own == header.number:
                worker.peer.send(Header(kind="cancel", number=number))
                return

    def _forget(self, known: _Known) -> None:
        if known.introduction.role == "worker":
            self._say(f"worker {known.address} disconnected")
            if self._workers.get(known.address) is known:
                del self._workers[known.address]
            for asker, number in known.asked.values():
                asker.under_way -= 1
                asker.peer.send(Header(kind="lost", number=number))
            self._tell_roster(self._coordinators.values())
            return
        self._say(f"coordinator {known.address} disconnected")
        self._coordinators.pop(known.number, None)
        for worker in self._workers.values():
            worker.peer.send(Header(kind="gone", coordinator=known.number))

    async def listen(self, host: str, port: int, context: ssl.SSLContext | None) -> asyncio.Server:
        """Serve all that connect. Raises OSError where that address cannot be listened on."""

        async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            where = writer.get_extra_info("peername")
            address = f"{'tls' if context else 'tcp'}://{where[0]}:{where[1]}"
            role = role_in(writer.get_extra_info("peercert")) if context else None
            if context and role is None:
                self._say(f"disconnected {address}: its certificate is not for a coordinator or a worker")
                writer.transport.abort()
                return
            with contextlib.suppress(asyncio.CancelledError):
                await self.attend(Peer(reader, writer), address, role)

        more = {"ssl_handshake_timeout": HELLO_SECONDS} if context else {}
        return await asyncio.start_server(come, host, port, ssl=context, limit=1 << 20, **more)


# Being a scheduler: this process listens until a person ends it.


def listen_at(channel: Channel, say: Say) -> None:
    """Bring workers and coordinators together. Raises RequestError for an address of no use, KeyboardInterrupt when a
    person ends it.
    """
    asyncio.run(_listen(channel, say))
    raise KeyboardInterrupt


async def _listen(channel: Channel, say: Say) -> None:
    expect_losses()
    context = channel.context("scheduler")
    try:
        server = await Scheduler(say).listen(channel.host, channel.port, context)
    except OSError as error:
        raise RequestError(
            f"cannot listen at {channel.address}: {error.strerror or error}",
            hint="choose an address of this machine and a free port",
        ) from error
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    say(f"scheduler at {channel.address}")
    await interrupted.wait()
    server.close()

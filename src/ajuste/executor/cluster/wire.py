"""Frames between coordinator, scheduler and worker: a small header in JSON, and a body that its receiver alone reads.

Nothing is ever unpickled, and nothing is believed before it is validated: a peer may be broken, cut off or hostile.
"""

from __future__ import annotations

import asyncio
import hashlib
import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationError

from ajuste.executor.guest.emulator import choose_emulator
from ajuste.executor.guest.guest import GuestOptions
from ajuste.executor.guest.initramfs import GuestFiles, build_initramfs
from ajuste.executor.guest.lens import why_not_at_once
from ajuste.machine.installation import ajuste_version
from ajuste.model.base import BaseModel, ClosedModel, first_problem
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import MemoryNode
from ajuste.model.results import Clock, InstructionNs, TurnUs
from ajuste.model.topology import Topology
from ajuste.model.wording import visible_line

# What a worker is told of the machine that trials run on: checksums and versions, no places on a disk.


Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Word = Annotated[str, Field(max_length=300, pattern=r"^[\x20-\x7e]*$")]


class HostJob(ClosedModel):
    """A study that is to be measured on machines as they are: each resolves it for itself.

    ``ajuste`` is the version that a worker must have, too, and ``agent`` the SHA-256 of the agent, so that everywhere
    the same program measures. ``directory`` is where the study's own files are, on every machine alike.
    """

    ajuste: Word
    agent: Digest
    study: Annotated[str, Field(max_length=4 << 20)]
    directory: Annotated[str, Field(max_length=4096, pattern=r"^/[^\x00-\x1f]*$")]
    accept_risk: bool = False


class GuestJob(ClosedModel):
    """A guest, by the SHA-256 of its ``kernel`` and of its ``initramfs``, in which everything is that it ever has.

    ``ajuste`` and ``qemu`` are versions that a worker must have, too: with these the same plan gives the same bytes on
    every machine. ``spec``, ``release`` and ``package`` name the kernel for people.
    """

    ajuste: Word
    qemu: Word
    spec: Annotated[str, Field(max_length=4096)]
    release: Word
    package: Word
    kernel: Digest
    initramfs: Digest
    clock: Clock
    cpus: Annotated[int, Field(ge=1, le=16)]
    memory_mib: Annotated[int, Field(ge=64, le=1 << 20)]
    seed: Annotated[int, Field(ge=0, lt=1 << 63)]
    instruction_ns: InstructionNs
    kernel_arguments: Annotated[tuple[Word, ...], Field(max_length=200)] = ()
    nodes: Annotated[tuple[MemoryNode, ...], Field(max_length=64)] = ()
    turn_us: TurnUs | None = None
    parallel: bool | None = None
    topology: Topology | None = None
    snapshot: bool = True

    @property
    def contents(self) -> tuple[str, ...]:
        """The checksums of the files that a worker must have."""
        return (self.kernel, self.initramfs)

    @cached_property
    def name(self) -> str:
        """The same for the same machine."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


# From a study's guest to a parcel and the files that go with it.


@dataclass(frozen=True)
class PackedGuest:
    """``files`` of this disk by their SHA-256."""

    parcel: GuestJob
    files: dict[str, Path]


def pack_guest(image: KernelImage, files: GuestFiles, guest: GuestOptions, directory: Path) -> PackedGuest:
    """Pack all that the guest needs; what is made for that goes into ``directory``. Raises RequestError for files that
    are missing or unsuitable.
    """
    archive = build_initramfs(files, image, directory / "initramfs", quiet_gate=guest["clock"] == "virtual")
    emulator = choose_emulator(guest["clock"], guest["cpus"], guest["home"], guest["say"], topology=guest["topology"])
    parallel = guest["parallel"]
    if parallel is None and guest["clock"] == "virtual" and guest["cpus"] > 1:
        # All workers have the same clock, or refuse.
        parallel = not why_not_at_once(emulator)
    parcel = GuestJob(
        ajuste=ajuste_version(),
        qemu=emulator.version,
        spec=image.spec,
        release=image.release,
        package=image.package,
        kernel=image.sha256,
        initramfs=archive.sha256,
        clock=guest["clock"],
        cpus=guest["cpus"],
        memory_mib=guest["memory_mib"],
        seed=guest["seed"],
        instruction_ns=guest["instruction_ns"],
        kernel_arguments=guest["kernel_arguments"],
        nodes=guest["nodes"],
        turn_us=guest["turn_us"],
        parallel=parallel,
        topology=guest["topology"],
        snapshot=guest["snapshot"],
    )
    return PackedGuest(parcel, {image.sha256: image.vmlinuz, archive.sha256: archive.path})


LARGEST_HEADER: Final = 4096
LARGEST_BODY: Final = 160 << 20
"""Twice what a trial may say (``stream.LONGEST_STREAM_BYTES``), and more, because text grows in JSON."""

HELLO_SECONDS: Final = 10.0
"""So long a peer may take to say who it is."""
SILENCE_SECONDS: Final = 60.0
"""A peer that says nothing for so long is gone. Each says something every ``BEAT_SECONDS``."""
BEAT_SECONDS: Final = 5.0
SLOWEST_BYTES_PER_SECOND: Final = 50_000
MOST_UNREAD_BYTES: Final = 512 << 20
"""A peer that does not read what it is sent is cut off."""
VERSION: Final = 1

_START: Final = struct.Struct("!4sII")
_MAGIC: Final = b"AJC1"
_BUFFER_BYTES: Final = 1 << 20

Line = Annotated[str, Field(max_length=2000), AfterValidator(visible_line)]
"""Text of a peer that people are shown."""
Role = Literal["coordinator", "worker"]
What = Literal["", "survey", "receive", "open", "carry-out", "close", "bench-survey", "bench-carry-out", "bench-close"]
"""What workers are asked to do; see ``duties``."""


class Broken(Exception):
    """A peer did not keep to the protocol; the message says how, in one line."""


class Message(ClosedModel):
    """What is sent: frozen, and without unknown fields."""


class Header(Message):
    """``number`` is of a request and its answer; ``worker`` names who is asked, ``coordinator`` who asks."""

    kind: Literal["hello", "welcome", "refused", "roster", "request", "answer", "lost", "cancel", "gone", "beat"]
    number: int = Field(default=0, ge=0, lt=1 << 53)
    worker: str = Field(default="", max_length=100)
    coordinator: int = Field(default=0, ge=0, lt=1 << 53)
    what: What = ""


class Introduction(Message):
    """The body of a ``hello``. ``threads`` plans run at once; what ``benches`` measures by its own clock."""

    version: Literal[1] = VERSION
    role: Role
    threads: int = Field(default=1, ge=1, le=4096)
    benches: bool = False


class Worker(Message):
    """A worker as the scheduler knows it. ``address`` is where it connected from, and what names it."""

    address: Annotated[str, Field(max_length=100), AfterValidator(visible_line)]
    threads: int = Field(ge=1, le=4096)
    benches: bool = False


class Roster(Message):
    """The body of a ``roster``: all workers that there are."""

    workers: tuple[Worker, ...] = Field(max_length=100_000)


M = TypeVar("M", bound=BaseModel)


def read_as(model: type[M], said: bytes, what: str) -> M:
    """``said`` as what it must be. Raises Broken."""
    try:
        return model.model_validate_json(said)
    except (ValidationError, RecursionError, UnicodeDecodeError) as error:
        reason = first_problem(error) if isinstance(error, ValidationError) else type(error).__name__
        raise Broken(f"{what} is malformed: {visible_line(reason[:300])}") from None


def frame(header: Header, body: bytes = b"") -> tuple[bytes, bytes]:
    """What is sent: the beginning, and the body as it is."""
    head = header.model_dump_json(exclude_defaults=True).encode()
    return _START.pack(_MAGIC, len(head), len(body)) + head, body


async def receive(
    reader: asyncio.StreamReader, *, silence_s: float | None = SILENCE_SECONDS, largest: int = LARGEST_BODY
) -> tuple[Header, bytes] | None:
    """The next frame; None where the peer has ended in good order. Raises Broken."""
    try:
        async with asyncio.timeout(silence_s):
            start = await reader.readexactly(_START.size)
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise Broken("it ended within a message") from None
    except TimeoutError:
        raise Broken(f"it sent nothing for {silence_s:g} s") from None
    except OSError:
        return None
    magic, head, body = _START.unpack(start)
    if magic != _MAGIC:
        raise Broken("it does not use Ajuste's protocol")
    if head > LARGEST_HEADER or body > largest:
        raise Broken(f"its message has {max(head, body)} bytes; at most {largest} are allowed")
    slowest_s = None if silence_s is None else silence_s + (head + body) / SLOWEST_BYTES_PER_SECOND
    try:
        async with asyncio.timeout(slowest_s):
            said = await reader.readexactly(head)
            return read_as(Header, said, "the header of its message"), await reader.readexactly(body)
    except TimeoutError:  # An OSError, too.
        raise Broken("it stopped within a message") from None
    except (asyncio.IncompleteReadError, OSError):
        raise Broken("it ended within a message") from None


class Peer:
    """The other end of a connection. What is ``trusted`` is of this program: it may take its time on a busy machine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, trusted: bool = False) -> None:
        self.reader = reader
        self._writer = writer
        self._watched = not trusted

    def send(self, header: Header, body: bytes = b"") -> None:
        """Does not wait; a peer that reads nothing is cut off."""
        if self._writer.is_closing():
            return
        for part in frame(header, body):
            if part:
                self._writer.write(part)
        if self._writer.transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
            self.cut()

    async def receive(self, *, silence_s: float = 0.0, largest: int = LARGEST_BODY) -> tuple[Header, bytes] | None:
        limit_s = (silence_s or SILENCE_SECONDS) if self._watched else None
        return await receive(self.reader, silence_s=limit_s, largest=largest)

    async def beat(self) -> None:
        """Say now and then that this side is there."""
        while self._watched:
            self.send(Header(kind="beat"))
            await asyncio.sleep(BEAT_SECONDS)

    def cut(self) -> None:
        self._writer.transport.abort()

    async def close(self) -> None:
        """End in good order, but do not wait for long."""
        try:
            self._writer.close()
            async with asyncio.timeout(1):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self.cut()


async def connected(socket: Any, *, trusted: bool = True) -> Peer:
    """The other end of a socket that is connected already."""
    reader, writer = await asyncio.open_connection(sock=socket, limit=_BUFFER_BYTES)
    return Peer(reader, writer, trusted=trusted)


def expect_losses() -> None:
    """Have the loop that runs say nothing of broken connections: their readers report them."""
    loop = asyncio.get_running_loop()

    def say(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), OSError):
            loop.default_exception_handler(context)

    loop.set_exception_handler(say)

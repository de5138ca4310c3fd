"""The way to a scheduler: its address, the keys that are shown to it, and the first words."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ajuste.executor.cluster.keys import SCHEDULER_NAME, Side, context_of
from ajuste.executor.cluster.scheduler import Scheduler
from ajuste.executor.cluster.wire import HELLO_SECONDS, Broken, Header, Introduction, Peer, expect_losses
from ajuste.model.error import RequestError
from ajuste.model.wording import Say, visible_line

CONNECT_SECONDS: Final = 10.0
"""So long a scheduler may take to answer."""

_ADDRESS: Final = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):(\d{1,5})")
_BUFFER_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Channel:
    """``address`` as tls://HOST:PORT, whose ``keys`` are in a directory; or tcp://HOST:PORT, in the clear."""

    address: str
    host: str
    port: int
    keys: Path | None

    def context(self, side: Side) -> ssl.SSLContext | None:
        """Raises RequestError for keys that are not there, or not private."""
        return None if self.keys is None else context_of(self.keys, side)


def channel_to(option: str, address: str, keys: Path, *, insecure: bool, root: bool) -> Channel:
    """Raises RequestError for what is no address, and for plain TCP without ``insecure``, or by ``root``."""
    found = _ADDRESS.fullmatch(address)
    if not found or not 0 < int(found[3]) < 65536:
        raise RequestError(
            f"{option} {visible_line(address)!r}: expected the address of a scheduler, such as tls://host:8786"
        )
    host = found[2].strip("[]")
    if found[1] == "tls":
        return Channel(address, host, int(found[3]), keys)
    if root:
        raise RequestError(
            f"{option} {address}: root does not use plain TCP, where anyone on the way can run commands as root",
            hint=f"use tls://{found[2]}:{found[3]} with keys made by `ajuste cluster keys` "
            "(docs/how-to/several-machines.md)",
        )
    if not insecure:
        raise RequestError(
            f"{option} {address}: anyone who reaches a plain TCP port can run commands on every worker",
            hint=f"use tls://{found[2]}:{found[3]} with keys made by `ajuste cluster keys`, or add --insecure",
        )
    return Channel(address, host, int(found[3]), None)


async def open_channel(channel: Channel, introduction: Introduction) -> Peer:
    """Connect and be welcome. Raises RequestError."""
    context = channel.context(introduction.role)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(
                channel.host,
                channel.port,
                ssl=context,
                server_hostname=SCHEDULER_NAME if context else None,
                limit=_BUFFER_BYTES,
            )
        peer = Peer(reader, writer)
        peer.send(Header(kind="hello"), introduction.model_dump_json().encode())
        said = await peer.receive(silence_s=HELLO_SECONDS)
    except (OSError, TimeoutError, Broken) as error:
        raise _unreachable(channel, _reason(error)) from None
    if said is None:
        raise _unreachable(channel, "it closed the connection" + (" (does it know this key?)" if context else ""))
    if said[0].kind != "welcome":
        raise _unreachable(channel, visible_line(said[1][:500].decode("ascii", "backslashreplace")))
    return peer


def _unreachable(channel: Channel, reason: str) -> RequestError:
    return RequestError(
        f"cannot reach the scheduler {channel.address}: {reason}",
        hint="start one with `ajuste scheduler --listen ADDRESS`",
    )


def _reason(error: BaseException) -> str:
    """Why nothing answered, in the system's words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate does not belong to this cluster's scheduler: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"no TLS with these keys: {(error.reason or str(error)).lower().replace('_', ' ')}"
    if isinstance(error, TimeoutError) and not str(error):
        return f"no answer within {CONNECT_SECONDS:g} s"
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


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

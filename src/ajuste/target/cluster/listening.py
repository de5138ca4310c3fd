"""Being a scheduler: this process listens until a person ends it."""

from __future__ import annotations

import asyncio
import signal

from ajuste.model.error import RequestError
from ajuste.target.cluster.channel import Channel
from ajuste.target.cluster.scheduler import Scheduler
from ajuste.target.cluster.wire import expect_losses
from ajuste.target.target import Say


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
            hint="name an address of this machine and a port that is free",
        ) from error
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    say(f"scheduler at {channel.address}")
    await interrupted.wait()
    server.close()

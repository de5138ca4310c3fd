"""The QEMU machine protocol over an inherited socket: commands, events, and the end of QEMU.

``qemu.qmp``'s asynchronous client on an event loop of its own: its synchronous wrapper keeps one loop a thread, which
it never closes, and cannot tell that QEMU is gone while it waits for an event.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Self, TypeVar

from qemu.qmp import EventListener, QMPClient, QMPError
from qemu.qmp.protocol import Runstate

from ajuste.model.error import RunError

_T = TypeVar("_T")
_ANSWER_SECONDS: Final = 60

# The end of QEMU is no error here: without this the client would say so on standard error.
logging.getLogger("qemu.qmp").addHandler(logging.NullHandler())


class MonitorClosed(Exception):
    """QEMU has ended, or is about to."""


class Monitor:
    """A connection to one QEMU. To be used by one thread at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._loop = asyncio.new_event_loop()
        self._client = QMPClient("ajuste")
        self._events = EventListener()
        self._arrival: asyncio.Task[Any] | None = None
        self._ending: asyncio.Task[Any] | None = None

    def __enter__(self) -> Self:
        self._client.register_listener(self._events)
        try:
            self._run(self._client.connect(self._connection))
        except QMPError as error:
            self._close()
            raise MonitorClosed from error
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def execute(self, command: str, arguments: dict[str, object] | None = None) -> Any:
        """What QEMU answers. Raises MonitorClosed if it has ended, RunError if it refuses or does not answer."""

        async def _execute() -> object:
            return await asyncio.wait_for(self._client.execute(command, arguments), _ANSWER_SECONDS)

        try:
            return self._run(_execute())
        except TimeoutError as error:
            raise RunError(f"QEMU did not answer {command} within {_ANSWER_SECONDS} s") from error
        except QMPError as error:
            if self._client.runstate != Runstate.RUNNING:
                raise MonitorClosed from error
            raise RunError(f"QEMU refused {command}: {error}") from error

    def pass_file(self, name: str, descriptor: int) -> None:
        """Give QEMU an open file under ``name``, for addresses such as ``fd:NAME``."""

        async def _send() -> None:
            self._client.send_fd_scm(descriptor)

        self._run(_send())
        self.execute("getfd", {"fdname": name})

    def wait_for(self, wanted: Callable[[dict[str, Any]], bool], timeout_s: float) -> dict[str, Any] | None:
        """The next event that is ``wanted``, or ``None`` after ``timeout_s``. Raises MonitorClosed when QEMU ends."""
        return self._run(self._wait_for(wanted, timeout_s))

    async def _wait_for(self, wanted: Callable[[dict[str, Any]], bool], timeout_s: float) -> dict[str, Any] | None:
        deadline = self._loop.time() + timeout_s
        while True:
            # Both tasks outlive this call: a cancelled one could take an event with it.
            if self._arrival is None:
                self._arrival = self._loop.create_task(self._events.get())
            if self._ending is None:
                self._ending = self._loop.create_task(_as_coroutine(self._client.runstate_changed()))
            ended = self._client.runstate != Runstate.RUNNING
            rest_s = 0 if ended else max(0.0, deadline - self._loop.time())
            await asyncio.wait({self._arrival, self._ending}, timeout=rest_s, return_when=asyncio.FIRST_COMPLETED)
            if self._arrival.done():
                event = dict(self._arrival.result())
                self._arrival = None
                if wanted(event):
                    return event
            elif ended:
                raise MonitorClosed
            elif self._client.runstate == Runstate.RUNNING and self._loop.time() >= deadline:
                return None

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        task = self._loop.create_task(work)
        try:
            return self._loop.run_until_complete(task)
        except (KeyboardInterrupt, SystemExit):
            # A signal arrived in between: the work must not be left half done.
            self._cancel({task})
            raise

    def _cancel(self, tasks: set[asyncio.Task[Any]]) -> None:
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    def _close(self) -> None:
        if self._loop.is_closed():
            return
        with contextlib.suppress(Exception):
            self._run(asyncio.wait_for(self._client.disconnect(), 5))
        with contextlib.suppress(Exception):
            self._cancel(asyncio.all_tasks(self._loop))
        self._loop.close()
        self._connection.close()


async def _as_coroutine(work: Awaitable[_T]) -> _T:
    return await work

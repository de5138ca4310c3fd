"""Serving the lab page on this machine until somebody interrupts it."""

from __future__ import annotations

import errno
import socket
import webbrowser
from collections.abc import Callable
from typing import Any, Final

import uvicorn

from ajuste.lab.access import new_token
from ajuste.lab.application import application
from ajuste.lab.service import LabService
from ajuste.machine.home import Home
from ajuste.model.error import RequestError

HOST: Final = "127.0.0.1"
PORT: Final = 8642


class _Server(uvicorn.Server):
    """Says when it listens. An interruption ends it at once: pages that watch a run would never let go."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._listening()


def serve(
    home: Home, *, port: int | None, browser: bool, allow_host: bool, tell: Callable[[dict[str, Any]], None]
) -> None:
    """Serve until interrupted (KeyboardInterrupt). ``tell`` gets the address, with its token, once it can be opened.

    Raises RequestError if the port is in use or the store cannot be opened.
    """
    listener = _listener(port)
    service = LabService(home, allow_host=allow_host)
    token, number = new_token(), listener.getsockname()[1]
    address = f"http://{HOST}:{number}/?token={token}"

    def listening() -> None:
        tell({"address": address, "port": number, "token": token, "store": service.store.name})
        if browser:
            webbrowser.open(address)

    config = uvicorn.Config(
        application(service, token=token, port=number),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=1,
        limit_concurrency=200,
        h11_max_incomplete_event_size=64 * 1024,
        ws="none",
    )
    with listener:
        _Server(config, listening).run(sockets=[listener])
    raise KeyboardInterrupt


def _listener(port: int | None) -> socket.socket:
    """On the ``port`` that was asked for, or else on the usual one or any that is free."""
    for number in (PORT, 0) if port is None else (port,):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, number))
            listener.listen(128)
        except OSError as error:
            listener.close()
            if port is None and number:
                continue
            why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
            raise RequestError(f"--port {number}: the port {why}", hint="choose another, or omit --port") from error
        return listener
    raise AssertionError("there is always a last port")

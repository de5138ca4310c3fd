"""Serving an application on this machine only, until somebody interrupts it."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Final, NoReturn

import uvicorn

from ajuste.lab.access import Application
from ajuste.model.error import RequestError

HOST: Final = "127.0.0.1"


class _Server(uvicorn.Server):
    """Says when it listens. An interruption ends it at once: pages that watch a run would never let go."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._listening()


def serve_until_interrupted(
    application: Application, listener: socket.socket, *, most_connections: int, listening: Callable[[], None]
) -> NoReturn:
    """``listening`` is called once requests are answered. Ends with KeyboardInterrupt."""
    config = uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=1,
        limit_concurrency=most_connections,
        h11_max_incomplete_event_size=64 * 1024,
        ws="none",
    )
    with listener:
        _Server(config, listening).run(sockets=[listener])
    raise KeyboardInterrupt


def listener_at(*ports: int) -> socket.socket:
    """At the first of ``ports`` that is free, where 0 stands for any. Raises RequestError if none is."""
    *others, last = ports
    for port in others:
        try:
            return _listener(port)
        except OSError:
            continue
    try:
        return _listener(last)
    except OSError as error:
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        raise RequestError(f"--port {last}: the port {why}", hint="choose another with --port") from error


def _listener(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener

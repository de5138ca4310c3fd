"""Serving agents by streamable HTTP on this machine, behind the guard of the lab page."""

from __future__ import annotations

import errno
import json
import socket
from typing import Final

import uvicorn

from ajuste.lab.access import Access, new_token
from ajuste.lab.agents.desk import AgentDesk
from ajuste.lab.agents.protocol import PATH, http_application
from ajuste.model.error import RequestError

HOST: Final = "127.0.0.1"
PORT: Final = 8643


class _Server(uvicorn.Server):
    """Says where it is once it listens."""

    told = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print(self.told, flush=True)  # noqa: T201 - what the client needs


def serve_http(desk: AgentDesk, port: int | None, *, as_json: bool) -> None:
    """Serve until interrupted (KeyboardInterrupt). Raises RequestError for a port that cannot be used."""
    listener = _listener(PORT if port is None else port)
    token, number = new_token(), listener.getsockname()[1]
    address = f"http://{HOST}:{number}{PATH}"
    guarded = Access(http_application(desk), token=token, port=number)
    config = uvicorn.Config(
        guarded,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=1,
        limit_concurrency=100,
        h11_max_incomplete_event_size=64 * 1024,
        ws="none",
    )
    server = _Server(config)
    server.told = (
        json.dumps({"address": address, "port": number, "token": token})
        if as_json
        else f"Agents connect to {address} with the header  Authorization: Bearer {token}"
    )
    with listener:
        server.run(sockets=[listener])
    raise KeyboardInterrupt


def _listener(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        raise RequestError(f"--port {port}: the port {why}", hint="choose another with --port") from error
    return listener

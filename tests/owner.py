"""The API of the lab page as its owner asks it, without a server."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from ajuste_lab.application import api_routes
from ajuste_lab.service import LabService


def owners_client(service: LabService) -> TestClient:
    routes = Starlette(routes=api_routes(service))

    async def as_owner(scope: Scope, receive: Receive, send: Send) -> None:
        await routes({**scope, "role": "writer"}, receive, send)

    return TestClient(as_owner)

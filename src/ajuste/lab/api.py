"""The operations by plain HTTP and JSON: ``/api/NAME``, described by ``/api/openapi.json``.

What only looks may be asked with GET; everything with POST. The guard around the application wants a token.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from ajuste.lab.agents.budget import AgentBudget, AgentLimits
from ajuste.lab.agents.desk import AgentDesk
from ajuste.lab.agents.operations import MOST_BYTES, OPERATIONS, Operation, schema_of
from ajuste.lab.service import LabService
from ajuste.machine.installation import ajuste_version
from ajuste.model.error import AjusteError, RequestError

PREFIX: Final = "/api"

PAGE_LIMITS: Final = AgentLimits(trials=100_000, minutes=24 * 60, calls=1200)
"""Of programs that have the token of the lab page: as much as a day's work of a person."""


def api_routes(service: LabService) -> list[BaseRoute]:
    """The routes for programs: one desk for all who have the token."""
    desk = AgentDesk(service, AgentBudget(PAGE_LIMITS))
    routes: list[BaseRoute] = [Route(f"{PREFIX}/openapi.json", _description, methods=["GET"])]
    for operation in OPERATIONS.values():
        methods = ["GET", "POST"] if operation.reads else ["POST"]
        endpoint = _endpoint(desk, operation)
        routes.append(Route(f"{PREFIX}/{operation.name}", endpoint, methods=methods))
    return routes


def openapi() -> dict[str, Any]:
    """The OpenAPI 3.1 document of all operations."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ajuste", "version": ajuste_version()},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": {f"{PREFIX}/{one.name}": _path(one) for one in OPERATIONS.values()},
    }


def _path(operation: Operation) -> dict[str, Any]:
    answer = {"content": {"application/json": {"schema": {"type": "object"}}}}
    responses = {
        "200": {"description": "The answer.", **answer},
        "400": {"description": "The request is wrong or not allowed; nothing changed: error and hint.", **answer},
    }
    body = {"required": True, "content": {"application/json": {"schema": schema_of(operation)}}}
    own = {"operationId": operation.name, "summary": operation.what, "responses": responses}
    return {"post": own | {"requestBody": body}}


def _endpoint(desk: AgentDesk, operation: Operation) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        try:
            arguments = dict(request.query_params) if request.method == "GET" else await _body(request)
            arguments.pop("token", None)
            found = await run_in_threadpool(partial(operation.carry_out, desk, arguments))
        except AjusteError as error:
            status = 400 if isinstance(error, RequestError) else 500
            return JSONResponse({"error": str(error), "hint": error.hint or ""}, status)
        return JSONResponse(found)

    return answer


async def _body(request: Request) -> dict[str, Any]:
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > MOST_BYTES:
            raise RequestError(f"the request has more than {MOST_BYTES // 1024} KiB", hint="send less")
    try:
        found = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        raise RequestError("the body is not JSON", hint="send one JSON object") from None
    if not isinstance(found, Mapping):
        raise RequestError("the body is not a JSON object", hint="send one JSON object")
    return dict(found)


async def _description(_: Request) -> Response:
    return JSONResponse(openapi())

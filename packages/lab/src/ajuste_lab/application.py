"""The lab page as an application: its pages, its files, its errors, and ``/api``.

The operations are there for programs by plain HTTP and JSON: ``/api/NAME``, described by ``/api/openapi.json``. What
only looks may be asked with GET; everything with POST. The guard around the application wants a token.
"""

from __future__ import annotations

import json
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ajuste.machine.home import Home, ajuste_version
from ajuste.model.error import AjusteError, RequestError
from ajuste.model.wording import shortened
from ajuste_lab.access import (
    HOST,
    LOOPBACK,
    VIEWED,
    Access,
    Application,
    OwnerOnly,
    listener_at,
    new_token,
    serve_until_interrupted,
    wants_json,
)
from ajuste_lab.agents.budget import AgentBudget, AgentLimits
from ajuste_lab.agents.desk import AgentDesk
from ajuste_lab.agents.operations import MOST_BYTES, Operation, argument_schema, operations
from ajuste_lab.pages import experiment, explore, machine, run, runs, tunables
from ajuste_lab.rendering import added_pages, page, static_file
from ajuste_lab.service import LabService
from ajuste_lab.watch import Laboratory

PREFIX: Final = "/api"

PAGE_LIMITS: Final = AgentLimits(trials=100_000, minutes=24 * 60, calls=1200)
"""The limits of programs that have the token of the lab page: about a day's work of a person."""


def api_routes(service: LabService) -> list[Route]:
    """Return the routes for programs; viewers have a desk of their own, so they use none of the owner's budget."""
    desks = {role: AgentDesk(service, AgentBudget(PAGE_LIMITS)) for role in ("writer", "viewer")}
    routes = [Route(f"{PREFIX}/openapi.json", _description, methods=["GET"])]
    for operation in operations().values():
        methods = ["GET", "POST"] if operation.reads else ["POST"]
        endpoint = _endpoint(desks, operation)
        routes.append(Route(f"{PREFIX}/{operation.name}", endpoint, methods=methods))
    return routes


def openapi() -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of all operations."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ajuste", "version": ajuste_version()},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": {f"{PREFIX}/{operation.name}": _path(operation) for operation in operations().values()},
    }


def _path(operation: Operation) -> dict[str, Any]:
    answer = {"content": {"application/json": {"schema": {"type": "object"}}}}
    responses = {
        "200": {"description": "The answer.", **answer},
        "400": {"description": "The request is wrong or not allowed; nothing changed: error and hint.", **answer},
    }
    body = {"required": True, "content": {"application/json": {"schema": argument_schema(operation)}}}
    post = {"operationId": operation.name, "summary": operation.what, "responses": responses}
    return {"post": post | {"requestBody": body}}


def _endpoint(desks: Mapping[str, AgentDesk], operation: Operation) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        try:
            in_address = request.method == "GET"
            arguments = _in_address(request.query_params) if in_address else await _body(request)
            arguments.pop("token", None)
            desk = desks[request.scope["role"]]
            result = await run_in_threadpool(partial(operation.carry_out, desk, arguments, as_text=in_address))
        except AjusteError as error:
            status = 400 if isinstance(error, RequestError) else 500
            return JSONResponse({"error": str(error), "hint": error.hint or ""}, status)
        return JSONResponse(result)

    return answer


def _in_address(query: QueryParams) -> dict[str, Any]:
    # A name that is repeated is a list.
    values = {name: query.getlist(name) for name in query}
    return {name: several if len(several) > 1 else several[0] for name, several in values.items()}


async def _body(request: Request) -> dict[str, Any]:
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > MOST_BYTES:
            raise RequestError(f"the request has more than {MOST_BYTES // 1024} KiB", hint="send less")
    try:
        document = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        raise RequestError("the body is not JSON", hint="send one JSON object") from None
    if not isinstance(document, Mapping):
        raise RequestError("the body is not a JSON object", hint="send one JSON object")
    return dict(document)


async def _description(_: Request) -> Response:
    return JSONResponse(openapi())


PORT: Final = 8642


def lab_routes(service: LabService) -> list[Route]:
    """Return all routes; those that viewers may not open refuse them."""
    pages = (runs, run, explore, tunables, machine, experiment, *added_pages())
    routes = [
        Route("/static/{name}", _static),
        *(route for module in pages for route in module.ROUTES),
        *api_routes(service),
    ]
    return [
        route
        if route.path in VIEWED
        else Route(route.path, route.endpoint, methods=list(route.methods or ()), middleware=[Middleware(OwnerOnly)])
        for route in routes
    ]


def application(
    service: LabService, *, token: str, port: int, hosts: tuple[str, ...] = LOOPBACK, once: str = ""
) -> Application:
    """Return the application behind its guard; ``port`` is where browsers find it. ``once`` is as in ``Access``."""
    lab = Laboratory(service, token, f"http://{HOST}:{port}")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        service.close()

    within = Starlette(
        routes=lab_routes(service),
        middleware=[Middleware(GZipMiddleware, minimum_size=1024, compresslevel=3)],
        exception_handlers={AjusteError: _wrong, HTTPException: _http_error},
        lifespan=lifespan,
    )
    within.state.lab = lab
    return Access(within, token=token, port=port, hosts=hosts, once=once)


def _static(request: Request) -> Response:
    return static_file(request.path_params["name"], "gzip" in request.headers.get("accept-encoding", ""))


def _wrong(request: Request, error: Exception) -> Response:
    assert isinstance(error, AjusteError)
    status = 404 if "not found" in error.message else 400 if isinstance(error, RequestError) else 500
    if wants_json(request.scope):
        return JSONResponse({"error": str(error), "hint": error.hint or ""}, status_code=status)
    return page(request, "wrong.html.j2", status=status, message=str(error), hint=error.hint or "")


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    is_missing = error.status_code == 404
    message = f"{shortened(request.url.path)} is not found" if is_missing else str(error.detail)
    hint = (
        "look for a run in the list, or for a setting under Tunables" if is_missing else "go back to the list of runs"
    )
    if wants_json(request.scope):
        return JSONResponse({"error": message, "hint": ""}, status_code=error.status_code)
    return page(request, "wrong.html.j2", status=error.status_code, message=message, hint=hint)


def serve(
    home: Home, *, port: int | None, browser: bool, allow_host: bool, tell: Callable[[dict[str, Any]], None]
) -> None:
    """Serve the lab page until KeyboardInterrupt, on ``port`` or else on the usual one or any that is free.

    ``tell`` gets the address, with its token, once it can be opened. Raises RequestError if the port is in use or the
    store cannot be opened.
    """
    listener = listener_at(PORT, 0) if port is None else listener_at(port)
    service = LabService(home, allow_host=allow_host)
    token, once, number = new_token(), new_token() if browser else "", listener.getsockname()[1]
    place = f"http://{HOST}:{number}/?token="

    def listening() -> None:
        tell({"address": place + token, "port": number, "token": token, "store": service.store.name})
        if browser:  # A browser in the terminal returns only when it is left.
            threading.Thread(target=webbrowser.open, args=(place + once,), daemon=True).start()

    page_application = application(service, token=token, port=number, once=once)
    serve_until_interrupted(page_application, listener, listening=listening)

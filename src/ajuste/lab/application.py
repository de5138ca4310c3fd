"""The lab page as an application: its pages, its files, and what is said when something is wrong."""

from __future__ import annotations

import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ajuste.lab.access import LOOPBACK, Access, Application, new_token, wants_json
from ajuste.lab.api import api_routes
from ajuste.lab.pages import experiment, explore, machine, run, runs, tunables
from ajuste.lab.rendering import page, static_file
from ajuste.lab.service import LabService
from ajuste.lab.serving import HOST, listener_at, serve_until_interrupted
from ajuste.lab.watch import Laboratory
from ajuste.machine.home import Home
from ajuste.model.error import AjusteError, RequestError

PORT: Final = 8642


def application(service: LabService, *, token: str, port: int, hosts: tuple[str, ...] = LOOPBACK) -> Application:
    """All of it behind its guard. ``port`` is where browsers find it."""
    lab = Laboratory(service, token, f"http://{HOST}:{port}")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        service.close()

    pages = (runs, run, explore, tunables, machine, experiment)
    routes = [route for one in pages for route in one.ROUTES]
    within = Starlette(
        routes=[Route("/static/{name}", _static), *routes, *api_routes(service)],
        middleware=[Middleware(GZipMiddleware, minimum_size=1024, compresslevel=3)],
        exception_handlers={AjusteError: _wrong, HTTPException: _not_found},
        lifespan=lifespan,
    )
    within.state.lab = lab
    return Access(within, token=token, port=port, hosts=hosts)


def _static(request: Request) -> Response:
    return static_file(request.path_params["name"], "gzip" in request.headers.get("accept-encoding", ""))


def _wrong(request: Request, error: Exception) -> Response:
    assert isinstance(error, AjusteError)
    status = 404 if "not found" in error.message else 400 if isinstance(error, RequestError) else 500
    if wants_json(request.scope):
        return JSONResponse({"error": str(error), "hint": error.hint or ""}, status_code=status)
    return page(request, "wrong.html.j2", status=status, message=str(error), hint=error.hint or "")


def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = "This page is not found." if error.status_code == 404 else str(error.detail)
    return page(request, "wrong.html.j2", status=error.status_code, message=message, hint="go to the list of runs")


def serve(
    home: Home, *, port: int | None, browser: bool, allow_host: bool, tell: Callable[[dict[str, Any]], None]
) -> None:
    """Serve the lab page until interrupted (KeyboardInterrupt), on ``port`` or else on the usual one or any that is
    free. ``tell`` gets the address, with its token, once it can be opened.

    Raises RequestError if the port is in use or the store cannot be opened.
    """
    listener = listener_at(PORT, 0) if port is None else listener_at(port)
    service = LabService(home, allow_host=allow_host)
    token, number = new_token(), listener.getsockname()[1]
    address = f"http://{HOST}:{number}/?token={token}"

    def listening() -> None:
        tell({"address": address, "port": number, "token": token, "store": service.store.name})
        if browser:
            webbrowser.open(address)

    page_application = application(service, token=token, port=number)
    serve_until_interrupted(page_application, listener, most_connections=200, listening=listening)

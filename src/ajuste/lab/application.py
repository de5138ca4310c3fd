"""The lab page as an application: its pages, its files, and what is said when something is wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from ajuste.lab.access import LOOPBACK, Access, Application, wants_json
from ajuste.lab.laboratory import Laboratory
from ajuste.lab.pages import compare, experiment, explore, imports, machine, run, runs, tunables
from ajuste.lab.rendering import page, static_file
from ajuste.lab.service import LabService
from ajuste.model.error import AjusteError, RequestError

_API: Final = "ajuste.lab.api"


def application(service: LabService, *, token: str, port: int, hosts: tuple[str, ...] = LOOPBACK) -> Application:
    """All of it behind its guard. ``port`` is where browsers find it."""
    lab = Laboratory(service, token, f"http://127.0.0.1:{port}")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        service.close()

    pages = (runs, imports, run, compare, explore, tunables, machine, experiment)
    routes: list[BaseRoute] = [route for one in pages for route in one.ROUTES]
    within = Starlette(
        routes=[Route("/static/{name}", _static), *routes, *_api(service)],
        middleware=[Middleware(GZipMiddleware, minimum_size=1024, compresslevel=3)],
        exception_handlers={AjusteError: _wrong, HTTPException: _not_found},
        lifespan=lifespan,
    )
    within.state.lab = lab
    return Access(within, token=token, port=port, hosts=hosts)


def _api(service: LabService) -> list[BaseRoute]:
    """The routes for programs, if this Ajuste has them."""
    if find_spec(_API) is None:
        return []
    found: list[BaseRoute] = list(import_module(_API).api_routes(service))
    return found


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

"""Pages from templates, in the look of the reports; and the files that all pages load."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ajuste.model.error import RequestError
from ajuste.model.plugins import add_problem, plugins
from ajuste.model.wording import count_of
from ajuste.report.document import Report
from ajuste.report.format import ago
from ajuste.report.html import page_asset, page_context, page_environment, page_style
from ajuste.report.verdicts import LOOKS
from ajuste.store.head import Run
from ajuste_lab.access import VIEWED, viewer_token
from ajuste_lab.watch import Laboratory

if TYPE_CHECKING:
    import jinja2


Form = ImmutableMultiDict[str, str]
MOST_FIELDS: Final = 1000
_KIND: Final = "application/x-www-form-urlencoded"

PLACES: Final = (
    ("/", "Runs"),
    ("/new", "New experiment"),
    ("/tunables", "Tunables"),
    ("/kernels", "Kernels"),
    ("/machine", "Machine"),
)

_SCRIPTS: Final = (
    *("lab.js", "import.js", "live.js", "axes.js"),
    *("explore.js", "pens.js", "trials.js", "views.js", "analysed.js"),
)

_TYPES: Final = MappingProxyType({"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"})
_FOREVER: Final = "private, max-age=31536000, immutable"


def handled(handle: Callable[[Request, Form], Response]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that reads a form for ``handle``. Raises RequestError for any other body."""

    async def endpoint(request: Request) -> Response:
        kind = request.headers.get("content-type", _KIND).partition(";")[0].strip().lower()
        if kind != _KIND:
            raise RequestError(f"the request is {kind[:80]}; expected a form ({_KIND})")
        body = await request.body()
        try:
            fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
        except ValueError as error:
            raise RequestError(f"the form cannot be read: {error}", hint="reload the page") from error
        # Browsers end the lines of a text as mail does.
        plain = [(name, value.replace("\r\n", "\n")) for name, value in fields]
        return await run_in_threadpool(handle, request, ImmutableMultiDict(plain))

    return endpoint


@cache
def added_pages() -> tuple[ModuleType, ...]:
    """Return the pages of other packages: modules with ``PLACES`` as above, and ``ROUTES``."""
    pages = []
    for plugin in plugins("pages").values():
        try:
            pages.append(plugin.load())
        except RequestError as error:
            add_problem(error.message)
    return tuple(pages)


@dataclass(frozen=True)
class StaticFile:
    """``compressed`` is its content by gzip."""

    kind: str
    compressed: bytes


def request_lab(request: Request) -> Laboratory:
    """Return the context that all pages share."""
    lab: Laboratory = request.app.state.lab
    return lab


def request_run(request: Request) -> tuple[Laboratory, Run]:
    """Return the context that all pages share, and the run in the address. Raises RequestError."""
    lab = request_lab(request)
    return lab, lab.service.run(request.path_params["run"])


def is_writer(request: Request) -> bool:
    """Return whether the client may change things."""
    return request.scope.get("role") == "writer"


def page(request: Request, template: str, *, status: int = 200, **context: Any) -> Response:
    """Return a page of its own template; all text in ``context`` is escaped."""
    text = _environment().get_template(template).render(**_common(request), **context)
    return HTMLResponse(text, status_code=status)


def document_page(
    request: Request, report: Report, *, template: str = "document.html.j2", status: int = 200, **context: Any
) -> Response:
    """Return a report as a page of the lab, with what its template shows around it."""
    text = _environment().get_template(template).render(**_common(request), **page_context(report), **context)
    return HTMLResponse(text, status_code=status)


def static_file(name: str, accepts_gzip: bool) -> Response:
    """Return a file that pages load; its address has its version, so that browsers keep it."""
    file = _files().get(name)
    if file is None:
        return Response("not found", status_code=404, media_type="text/plain")
    headers = {"cache-control": _FOREVER, "vary": "accept-encoding"}
    if accepts_gzip:
        return Response(file.compressed, media_type=file.kind, headers={**headers, "content-encoding": "gzip"})
    return Response(gzip.decompress(file.compressed), media_type=file.kind, headers=headers)


@cache
def _files() -> Mapping[str, StaticFile]:
    folder = resources.files("ajuste_lab").joinpath("static")
    texts = {name: folder.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS}
    texts["style.css"] = f"{page_style()}\n{folder.joinpath('lab.css').read_text(encoding='utf-8')}"
    texts |= {name: str(page_asset(name)) for name in ("theme.js", "report.js")}
    texts["plotly.js"] = str(page_asset("plotly.min.js.gz"))
    return MappingProxyType(
        {
            name: StaticFile(_TYPES[name.rpartition(".")[2]], gzip.compress(text.encode(), 6, mtime=0))
            for name, text in texts.items()
        }
    )


@cache
def _version(name: str) -> str:
    return hashlib.sha256(_files()[name].compressed).hexdigest()[:12]


def _common(request: Request) -> dict[str, Any]:
    lab, path = request_lab(request), request.url.path
    writer = is_writer(request)
    places = (*PLACES, *(place for module in added_pages() for place in module.PLACES))
    return {
        "places": [(place, name) for place, name in places if writer or place in VIEWED],
        "here": next((place for place, _ in reversed(places) if place != "/" and path.startswith(place)), "/"),
        "writer": writer,
        "view_address": f"{lab.address}/?token={viewer_token(lab.token)}" if writer else "",
        "allow_host": lab.service.allow_host,
        "of": "",
    }


@cache
def _environment() -> jinja2.Environment:
    environment = page_environment("ajuste_lab", *(module.__name__.partition(".")[0] for module in added_pages()))
    environment.globals["asset"] = lambda name: f"/static/{name}?v={_version(name)}"
    environment.globals["looks"] = LOOKS
    environment.filters["ago"] = ago
    environment.filters["counted"] = count_of
    return environment

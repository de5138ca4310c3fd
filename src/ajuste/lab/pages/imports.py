"""The page *Runs* takes bundles: the file that a person chooses is imported as ``ajuste import`` does it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ajuste.lab.access import IMPORT
from ajuste.lab.rendering import lab_of
from ajuste.model.error import RequestError
from ajuste.model.wording import visible_line

_KIND: Final = "application/octet-stream"


async def take(request: Request) -> Response:
    """Import the bundle that is the body of the request; ``name`` is what the person calls it."""
    name = visible_line(request.query_params.get("name", "").strip()[:100]) or "the file"
    kind = request.headers.get("content-type", "")
    if kind != _KIND:
        raise RequestError(f"the request is {kind[:80] or 'of no kind'}; expected the bytes of a bundle ({_KIND})")
    with NamedTemporaryFile(prefix="ajuste-import-", suffix=".ajuste") as kept:
        try:
            async for part in request.stream():
                kept.write(part)
            kept.flush()
        except ClientDisconnect:
            return Response(status_code=400)
        except OSError as error:
            message = f"{name} cannot be kept while it is checked: {error.strerror}"
            raise RequestError(message, hint="make room in the directory of temporary files") from error
        found = await run_in_threadpool(lab_of(request).service.import_bundle, Path(kept.name), name)
    return JSONResponse({"runs": [asdict(one) for one in found]})


ROUTES: Final = (Route(IMPORT, take, methods=["POST"]),)

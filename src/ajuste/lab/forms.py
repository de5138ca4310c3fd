"""What a form of a page sends: read without any library, handled beside the loop that serves all others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import Response

from ajuste.model.error import RequestError

Form = ImmutableMultiDict[str, str]
MOST_FIELDS: Final = 1000
_KIND: Final = "application/x-www-form-urlencoded"


def handled(handle: Callable[[Request, Form], Response]) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that reads a form and lets ``handle`` do what it asks. Raises RequestError for what is no form."""

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

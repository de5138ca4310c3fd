"""Reading a small page from a service, believing nothing of it."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from typing import Final
from urllib.parse import urlsplit

from ajuste.model.error import RequestError
from ajuste.run.live.reading import READ_SECONDS, NothingShownError

_MOST_BYTES: Final = 16 << 20
_CHUNK: Final = 1 << 16


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirection could lead anywhere."""

    def redirect_request(self, *_: object, **__: object) -> None:
        return None


_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)


def require_web(url: str) -> None:
    """Raises RequestError for anything but http(s)."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RequestError(
            f"{url!r} is not a URL of http or https", hint="write one such as http://127.0.0.1:9100/metrics"
        )


def page(url: str, limit_s: float = READ_SECONDS) -> bytes:
    """What is at ``url`` now. Raises NothingShownError."""
    deadline = time.monotonic() + limit_s
    try:
        with _OPENER.open(url, timeout=limit_s) as answer:
            found = bytearray()
            while chunk := answer.read1(_CHUNK):
                found += chunk
                if len(found) > _MOST_BYTES:
                    raise NothingShownError(f"{url} has more than {_MOST_BYTES >> 20} MiB")
                if time.monotonic() > deadline:
                    raise NothingShownError(f"{url} took longer than {limit_s} s")
            return bytes(found)
    except urllib.error.HTTPError as error:
        raise NothingShownError(f"{url} answers {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise NothingShownError(f"{url} does not answer: {error.reason}") from None
    except (OSError, ValueError) as error:
        raise NothingShownError(f"{url} does not answer: {error}") from None

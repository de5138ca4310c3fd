"""Files over HTTP, or of a mirror on this disk. Nothing is kept that is longer or another than expected.

What speaks HTTP is loaded when it is needed: most commands take what they need from the cache.
"""

from __future__ import annotations

import hashlib
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from ajuste.model.wording import Ongoing, Say

if TYPE_CHECKING:
    from http.client import HTTPException, HTTPMessage
    from urllib import request

SCHEMES: Final = ("https", "http", "file")
_TIMEOUT_S: Final = 30.0
_SAY_EVERY_S: Final = 0.25
# Before that the pace is not known.
_PACE_S: Final = 2.0
_ATTEMPTS: Final = 3
_PATIENCE_S: Final = 120.0
# Bytes a second that a mirror must give by then: one that drips would never end.
_LEAST_PACE: Final = 500
_CHUNK_BYTES: Final = 1 << 18
_PARTIAL: Final = 206
_GONE: Final = (404, 410)


class DownloadError(Exception):
    """Why a file could not be had, in words."""


class Gone(DownloadError):
    """The mirror answers that it does not have the file."""


class Differs(DownloadError):
    """The file is not what was expected."""


class Unreachable(DownloadError):
    """The mirror does not answer, or breaks off."""


class UnknownIssuer(Unreachable):
    """The mirror's certificate is not signed by anybody this machine knows."""


@dataclass(frozen=True)
class Expected:
    """What a signed list says of a file. ``sha256`` in hexadecimal digits."""

    size_bytes: int
    sha256: str


class Transfer:
    """Tells how many of ``size_bytes`` have arrived, and how long the rest takes. Reading afterwards takes its part of
    the time where ``is_read``.
    """

    def __init__(
        self,
        what: str,
        size_bytes: int,
        say: Say,
        *,
        is_read: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._size_bytes = size_bytes
        self._say = say
        self._work = size_bytes * (2 if is_read else 1)
        self._clock = clock
        self._began_s = self._said_s = clock()
        self._arrived = 0
        self._read = 0

    def arrived(self, size_bytes: int) -> None:
        """Count ``size_bytes`` more, negative where the mirror begins anew."""
        self._arrived += size_bytes
        self._tell()

    def read(self, size_bytes: int) -> None:
        self._read += size_bytes
        self._tell()

    def _tell(self) -> None:
        now_s = self._clock()
        if now_s - self._said_s < _SAY_EVERY_S:
            return
        self._said_s = now_s
        text = f"{self._what}: {self._arrived / 1e6:.1f} of {self._size_bytes / 1e6:.1f} MB"
        done = self._arrived + self._read
        if done > 0 and (took_s := now_s - self._began_s) >= _PACE_S:
            left_s = took_s / done * max(0, self._work - done)
            text += f" · about {left_s:.0f} s left" if left_s < 100 else f" · about {left_s / 60:.0f} min left"
        self._say(Ongoing(text))


class Downloader:
    """Reads from mirrors. ``proxies`` by scheme, instead of those that the environment names."""

    def __init__(self, proxies: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        from urllib import request

        self._clock = clock
        self._opener = request.OpenerDirector()
        for handler in (
            request.ProxyHandler({**request.getproxies(), **proxies}),
            request.HTTPHandler(),
            request.HTTPSHandler(),
            request.FileHandler(),
            request.HTTPErrorProcessor(),
            request.HTTPDefaultErrorHandler(),
            _redirects(),
        ):
            self._opener.add_handler(handler)

    def read(self, url: str, most_bytes: int) -> bytes:
        """Return a whole small file. Raises DownloadError."""
        content = bytearray()
        for start, chunk in self._chunks(url, most_bytes):
            del content[start:]
            content += chunk
            if len(content) > most_bytes:
                raise Differs(f"{redact_password(url)} has more than {most_bytes} bytes")
        return bytes(content)

    def save(self, url: str, into: Path, expected: Expected, arrived: Callable[[int], None] = lambda _: None) -> None:
        """Write a file that is what was ``expected``, or nothing. Raises DownloadError."""
        try:
            with into.open("xb") as file:
                digest = hashlib.sha256()
                for start, chunk in self._chunks(url, expected.size_bytes):
                    if start != file.tell():
                        arrived(-file.tell())
                        file.seek(0)
                        file.truncate()
                        digest = hashlib.sha256()
                    file.write(chunk)
                    digest.update(chunk)
                    arrived(len(chunk))
                size_bytes = file.tell()
            if size_bytes != expected.size_bytes:
                more = "or more " if size_bytes > expected.size_bytes else ""
                raise Differs(
                    f"{redact_password(url)} has {size_bytes} {more}bytes; expected {expected.size_bytes}, as listed"
                )
            if digest.hexdigest() != expected.sha256:
                raise Differs(f"{redact_password(url)} is not the listed file (its SHA-256 differs)")
        except BaseException:
            into.unlink(missing_ok=True)
            raise

    def _chunks(self, url: str, most_bytes: int) -> Iterator[tuple[int, bytes]]:
        # Parts of a file with their places, up to one byte beyond `most_bytes`. Where the mirror breaks off, it is
        # asked for the rest, and begins from 0 if it does not know of such requests.
        from http.client import HTTPException

        at = 0
        broken: OSError | HTTPException | None = None
        for _ in range(_ATTEMPTS):
            began_s = self._clock()
            with self._answer(url, at) as answer:
                first = at = at if getattr(answer, "status", 0) == _PARTIAL else 0
                try:
                    while at <= most_bytes and (chunk := answer.read1(min(_CHUNK_BYTES, most_bytes + 1 - at))):
                        yield at, chunk
                        at += len(chunk)
                        took_s = self._clock() - began_s
                        if took_s > _PATIENCE_S and at - first < took_s * _LEAST_PACE:
                            raise Unreachable(
                                f"{redact_password(url)}: the mirror gave {at - first} bytes in {took_s:.0f} s"
                            )
                except (OSError, HTTPException) as error:
                    broken = error
                else:
                    # What is still to come, where the mirror has said how much there is.
                    if at > most_bytes or not getattr(answer, "length", 0):
                        return
        raise Unreachable(
            f"{redact_password(url)}: the mirror broke off after {at} bytes" + (f" ({broken})" if broken else "")
        )

    def _answer(self, url: str, at: int) -> BufferedReader:
        from http.client import HTTPException
        from ssl import SSLCertVerificationError
        from urllib.error import HTTPError, URLError

        asked = _request(url)
        if at:
            asked.add_header("Range", f"bytes={at}-")
        try:
            answer: BufferedReader = self._opener.open(asked, timeout=_TIMEOUT_S)
        except HTTPError as error:
            error.close()
            text = f"{redact_password(url)}: the mirror answers {error.code} {error.reason}"
            if error.code in _GONE:
                raise Gone(text) from None
            raise DownloadError(text) from None
        except URLError as error:
            if isinstance(error.reason, FileNotFoundError):
                raise Gone(f"{redact_password(url)} not found") from None
            known = not isinstance(error.reason, SSLCertVerificationError)
            why = getattr(error.reason, "strerror", None) or error.reason
            raise (Unreachable if known else UnknownIssuer)(f"{redact_password(url)}: {why}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise Unreachable(f"{redact_password(url)}: {error or type(error).__name__}") from None
        return answer


def _redirects() -> request.HTTPRedirectHandler:
    # From HTTPS only to HTTPS, and never to a file of this machine.
    from urllib import request
    from urllib.error import URLError

    class Redirects(request.HTTPRedirectHandler):
        def redirect_request(
            self, req: request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
        ) -> request.Request | None:
            scheme = urlsplit(newurl).scheme
            if scheme != "https" and (req.type == "https" or scheme != "http"):
                raise URLError(f"the mirror redirects to {redact_password(newurl)}, which is not {req.type.upper()}")
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    return Redirects()


def redact_password(url: str) -> str:
    """Return an address without user and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _request(url: str) -> request.Request:
    # User and password are for the mirror alone, and not for where it redirects to.
    from urllib import request

    asked = request.Request(redact_password(url), headers={"User-Agent": "ajuste"})  # noqa: S310 - the caller knows its scheme
    login = urlsplit(url).netloc.rpartition("@")[0]
    if login:
        asked.add_unredirected_header("Authorization", f"Basic {b64encode(unquote(login).encode()).decode()}")
    return asked

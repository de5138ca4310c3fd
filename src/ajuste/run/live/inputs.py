"""Reading where live metrics are, believing nothing that is read: files of the kernel, logs that grow (also when they
are rotated), and small pages of services.
"""

from __future__ import annotations

import os
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ajuste.model.error import RequestError
from ajuste.run.live.reading import READ_SECONDS, NothingShownError

_MOST_OF_A_PAGE: Final = 16 << 20
_CHUNK_BYTES: Final = 1 << 16


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
            while chunk := answer.read1(_CHUNK_BYTES):
                found += chunk
                if len(found) > _MOST_OF_A_PAGE:
                    raise NothingShownError(f"{url} has more than {_MOST_OF_A_PAGE >> 20} MiB")
                if time.monotonic() > deadline:
                    raise NothingShownError(f"{url} took longer than {limit_s} s")
            return bytes(found)
    except urllib.error.HTTPError as error:
        raise NothingShownError(f"{url} answers {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise NothingShownError(f"{url} does not answer: {error.reason}") from None
    except (OSError, ValueError) as error:
        raise NothingShownError(f"{url} does not answer: {error}") from None


_MOST_OF_A_FILE: Final = 4 << 20


def read_file(path: Path) -> str:
    """What ``path`` has now. Raises NothingShownError."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_OF_A_FILE).decode(errors="replace")
    except OSError as error:
        raise NothingShownError(f"cannot read {path}: {error.strerror}") from None


def field_of(text: str, key: str) -> float | None:
    """The number after ``key`` in lines of names and numbers, such as /proc/vmstat, /proc/meminfo and cpu.stat. Bytes
    that are counted in kB are given in bytes.
    """
    for line in text.splitlines():
        words = line.replace(":", " ").split()
        if len(words) > 1 and words[0] == key:
            try:
                return float(words[1]) * (1024 if words[2:] == ["kB"] else 1)
            except ValueError:
                return None
    return None


_MOST_BYTES: Final = 8 << 20
"""Of what came at once; the rest is left out."""


class FollowedLog:
    """``path`` from its present end on."""

    def __init__(self, path: Path) -> None:
        if not path.is_absolute():
            raise RequestError(f"{path} is not an absolute path", hint=f"give {path.absolute()}")
        self._path = path
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise RequestError(
                f"cannot read {path}: {error.strerror}", hint="check its name and who may read it"
            ) from None
        self._at = os.lseek(self._file, 0, os.SEEK_END)
        self._rest = b""

    def lines(self) -> list[str]:
        """Whole lines only; the rest is given once its end has come. Raises NothingShownError."""
        found = self._new()
        try:
            here = self._path.stat()
        except FileNotFoundError:
            return found
        except OSError as error:
            raise NothingShownError(f"cannot read {self._path}: {error.strerror}") from None
        if not os.path.samestat(here, os.fstat(self._file)):
            self._follow()
            found += self._new()
        return found

    def _follow(self) -> None:
        """Go on with the file that took the place of this one."""
        try:
            new = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return
        os.close(self._file)
        self._file, self._at, self._rest = new, 0, b""

    def _new(self) -> list[str]:
        size = os.fstat(self._file).st_size
        if size < self._at:  # It was cut.
            self._at, self._rest = 0, b""
        if size - self._at > _MOST_BYTES:
            self._at, self._rest = size - _MOST_BYTES, b""
        chunk = os.pread(self._file, _MOST_BYTES, self._at)
        self._at += len(chunk)
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        return [line.decode(errors="replace") for line in whole]

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

"""Readings of sources, and the figures made of them: levels, counters, distributions.

Also the source itself, and how it reads files, logs and pages. Each kind of source is one file in ``sources``.
"""

from __future__ import annotations

import logging
import math
import os
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, TypeAlias
from urllib.parse import urlsplit

from ajuste.model.caller import open_kept
from ajuste.model.error import RequestError

if TYPE_CHECKING:
    import httpx

_LOG: Final = logging.getLogger(__name__)

Figures: TypeAlias = tuple[float, ...]
"""The figures of a source at one moment: a level or a counter, the sum and number of events, the buckets of a
histogram, or the events since the last reading."""

_MOST_RATIO: Final = 1e300

READ_SECONDS = 0.8
"""Maximum seconds of a reading."""

PAST_SECONDS = 10.0
"""Maximum seconds of opening a source, and of reading its past."""

Past = Callable[[float, float], Sequence[float]]
"""Takes the seconds from slice to slice and those that count of each; returns the figures of past slices."""

_MOST_OF_A_PAGE: Final = 16 << 20
_MOST_OF_A_FILE: Final = 4 << 20

# Maximum bytes of a log between two readings; earlier ones are skipped.
_MOST_BYTES: Final = 8 << 20

# Bytes at the end of a log that show whether its lines are those expected.
_TAIL_BYTES: Final = 64 << 10


@dataclass(frozen=True)
class Reading:
    """The figures of a source ``at_s``."""

    at_s: float
    figures: Figures


class CounterResetError(Exception):
    """A counter decreased: the service was restarted."""


Fold: TypeAlias = Callable[[Sequence[Reading]], float | None]
"""Makes one figure of the readings, or None if they have none. Raises CounterResetError."""


def level(readings: Sequence[Reading]) -> float | None:
    """Return the mean of a level."""
    values = [reading.figures[0] for reading in readings if reading.figures and math.isfinite(reading.figures[0])]
    return sum(values) / len(values) if values else None


def rate(readings: Sequence[Reading]) -> float | None:
    """Return the growth of a counter per second."""
    grown, seconds = _grown(readings)
    return grown[0] / seconds if seconds > 0 else None


def mean_of_events(readings: Sequence[Reading]) -> float | None:
    """Return the mean of the events between two readings of their sum and number."""
    grown, _ = _grown(readings)
    return grown[0] / grown[1] if len(grown) > 1 and grown[1] > 0 else None


def quantile_of_buckets(share: float, bounds: Sequence[float]) -> Fold:
    """Return the reader of a quantile from a histogram's cumulative buckets up to ``bounds``, on the straight line
    within its bucket.

    Source: histogram_quantile() of Prometheus.
    """

    def fold(readings: Sequence[Reading]) -> float | None:
        grown, _ = _grown(readings)
        if not grown or grown[-1] <= 0:
            return None
        wanted, below, low = share * grown[-1], 0.0, 0.0
        for bound, count in zip(bounds, grown, strict=True):
            if count >= wanted:
                if math.isinf(bound):
                    return low
                return low + (bound - low) * (wanted - below) / (count - below) if count > below else bound
            below, low = count, bound
        return low

    return fold


def mean_of_values(readings: Sequence[Reading]) -> float | None:
    """Return the mean of the events since the first reading."""
    values = _values(readings)
    return sum(values) / len(values) if values else None


def quantile_of_values(share: float) -> Fold:
    """Return the reader of a quantile of the events since the first reading (Hyndman and Fan's type 7)."""

    def fold(readings: Sequence[Reading]) -> float | None:
        values = sorted(_values(readings))
        if not values:
            return None
        place = share * (len(values) - 1)
        low = int(place)
        high = min(low + 1, len(values) - 1)
        return values[low] + (place - low) * (values[high] - values[low])

    return fold


def latest(fold: Fold, readings: Sequence[Reading]) -> float | None:
    """Return the newest figure: of the last reading if that is enough, else of the last two. Raises
    CounterResetError.
    """
    alone = fold(readings[-1:])
    return fold(readings[-2:]) if alone is None else alone


def _values(readings: Sequence[Reading]) -> list[float]:
    return [value for reading in readings[1:] for value in reading.figures if abs(value) < _MOST_RATIO]


def _grown(readings: Sequence[Reading]) -> tuple[Figures, float]:
    # The growth of each counter, and the seconds it took.
    if len(readings) < 2:
        return (), 0.0
    for earlier, later in pairwise(readings):
        if len(earlier.figures) != len(later.figures):
            raise CounterResetError("the buckets of the histogram are other ones now")
        for before, after in zip(earlier.figures, later.figures, strict=True):
            if after < before:
                raise CounterResetError("a counter was reset")
    first, last = readings[0], readings[-1]
    grown = tuple(after - before for before, after in zip(first.figures, last.figures, strict=True))
    return grown, last.at_s - first.at_s


class NothingShownError(Exception):
    """A source shows nothing now; the message has a short reason."""


@dataclass(frozen=True)
class Source:
    """A source of one metric.

    ``read`` returns the figures now, or raises NothingShownError within about ``READ_SECONDS``; it may be called from
    another thread, one call at a time. ``fold`` makes one figure of several readings. Sources with the same ``origin``
    are read one after the other, others at once. ``close`` closes files. A source with a memory has a ``past``, which
    raises NothingShownError as well, but may take ``PAST_SECONDS``. ``warning`` says what a person should check of a
    source that may show something later.
    """

    origin: str
    read: Callable[[], Figures]
    fold: Fold
    close: Callable[[], None] = lambda: None
    past: Past | None = None
    warning: str = ""


def look_at(source: Source) -> Figures:
    """Return the figures of ``source``. Raises NothingShownError for every failure, also for a bug of Ajuste."""
    try:
        return source.read()
    except NothingShownError:
        raise
    except Exception as error:
        _LOG.warning("source failed", exc_info=error)
        raise NothingShownError(f"reading failed: {error or type(error).__name__}") from error


# Files of the kernel, logs that grow and are rotated, and small pages of services. Nothing that is read is trusted.


@cache
def _client() -> httpx.Client:
    # No proxy; no redirection, which could lead anywhere; no kept connection, since a service may restart.
    import httpx  # only where a page is read

    return httpx.Client(
        trust_env=False,
        verify=ssl.create_default_context(),  # the machine's authorities, which may be a company's own
        headers={"Accept-Encoding": "identity"},
        limits=httpx.Limits(max_keepalive_connections=0),
    )


def require_web(url: str) -> None:
    """Raise RequestError unless ``url`` has http or https."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RequestError(
            f"{url!r} is not a URL of http or https", hint="write one such as http://127.0.0.1:9100/metrics"
        )


def page(url: str, limit_s: float = READ_SECONDS) -> bytes:
    """Fetch the whole page at ``url``. Raises NothingShownError, also for a body that breaks off."""
    import httpx

    client = _client()  # the first takes a while, and not out of the time limit
    deadline = time.monotonic() + limit_s
    try:
        with client.stream("GET", url, timeout=limit_s) as answer:
            if answer.status_code != httpx.codes.OK:
                raise NothingShownError(f"{url} answers {answer.status_code} {answer.reason_phrase}")
            body = bytearray()
            for chunk in answer.iter_raw():
                body += chunk
                if len(body) > _MOST_OF_A_PAGE:
                    raise NothingShownError(f"{url} has more than {_MOST_OF_A_PAGE >> 20} MiB")
                if time.monotonic() > deadline:
                    raise NothingShownError(f"{url} took longer than {limit_s} s")
            return bytes(body)
    except httpx.TimeoutException:
        raise NothingShownError(f"{url} took longer than {limit_s} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise NothingShownError(f"{url} does not answer: {error or type(error).__name__}") from None


def read_file(path: Path) -> str:
    """Return the current content of ``path``. Raises NothingShownError."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_OF_A_FILE).decode(errors="replace")
    except OSError as error:
        raise NothingShownError(f"cannot read {path}: {error.strerror}") from None


def field_of(text: str, key: str) -> float | None:
    """Return the number after ``key`` in lines of names and numbers, as in /proc/vmstat, /proc/meminfo and cpu.stat. A
    number in kB is returned in bytes.
    """
    for line in text.splitlines():
        words = line.replace(":", " ").split()
        if len(words) > 1 and words[0] == key:
            try:
                return float(words[1]) * (1024 if words[2:] == ["kB"] else 1)
            except ValueError:
                return None
    return None


class _Following:
    # One file, from `at` on. `inside` says whether the byte at `at` belongs to a line whose beginning was skipped.
    def __init__(self, file: BinaryIO, at: int) -> None:
        self.file = file
        self.at = at
        self._rest = b""
        self._inside = False

    def new(self) -> list[str]:
        size = os.fstat(self.file.fileno()).st_size
        if size < self.at:  # The log was truncated.
            self.at, self._rest, self._inside = 0, b"", False
        if size - self.at > _MOST_BYTES:
            self.at, self._rest = size - _MOST_BYTES, b""
            self._inside = os.pread(self.file.fileno(), 1, self.at - 1) != b"\n"
        chunk = os.pread(self.file.fileno(), _MOST_BYTES, self.at)
        self.at += len(chunk)
        *whole, rest = (self._rest + chunk).split(b"\n")
        if self._inside and whole:
            del whole[0]
            self._inside = False
        if len(rest) > _MOST_BYTES:
            rest, self._inside = b"", True
        self._rest = rest
        return [line.decode(errors="replace") for line in whole]


class FollowedLog:
    """The new lines of a log, from its present end on, also of one that is rotated."""

    def __init__(self, path: Path) -> None:
        if not path.is_absolute():
            raise RequestError(f"{path} is not an absolute path", hint=f"give {path.absolute()}")
        self._path = path
        try:
            file = open_kept(path)
        except OSError as error:
            raise RequestError(
                f"cannot read {path}: {error.strerror}", hint="check its name and who may read it"
            ) from None
        self._current = _Following(file, file.seek(0, os.SEEK_END))
        # The files that were rotated away: a service writes to the last of them until it opens the new one.
        self._rotated: list[_Following] = []

    def tail(self) -> list[str]:
        """Return the last whole lines before those that ``lines`` returns."""
        end = self._current.at
        begin = max(0, end - _TAIL_BYTES)
        lines = os.pread(self._current.file.fileno(), end - begin, begin).split(b"\n")[1 if begin else 0 : -1]
        return [line.decode(errors="replace") for line in lines]

    def lines(self) -> list[str]:
        """Return the whole lines since the last call; a line without its end waits. Raises NothingShownError."""
        try:
            here = self._path.stat()
        except FileNotFoundError:
            here = None
        except OSError as error:
            raise NothingShownError(f"cannot read {self._path}: {error.strerror}") from None
        if here and not os.path.samestat(here, os.fstat(self._current.file.fileno())):
            self._follow()
        before = self._current.at
        newest = self._current.new()
        lines = [line for rotated in self._rotated for line in rotated.new()] + newest
        if self._current.at > before:  # The service had left the rotated files before they were read to their ends.
            self._leave_rotated()
        return lines

    def _follow(self) -> None:
        with suppress(OSError):
            new = open_kept(self._path)
            self._rotated.append(self._current)
            self._current = _Following(new, 0)

    def _leave_rotated(self) -> None:
        for rotated in self._rotated:
            rotated.file.close()
        self._rotated.clear()

    def close(self) -> None:
        self._leave_rotated()
        self._current.file.close()

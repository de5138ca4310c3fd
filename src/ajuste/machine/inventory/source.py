"""The files of a machine, read without ever failing: what cannot be read is a reason in words."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import translate
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ConfigDict, Field

from ajuste.model.base import BaseModel

T = TypeVar("T")

_MOST_BYTES: Final = 1 << 16
_MOST_NAMES: Final = 20_000

NEEDS_ROOT: Final = "needs root"
NOT_THERE: Final = "not offered here"
NOT_UNDERSTOOD: Final = "not understood"


@dataclass(frozen=True)
class Missing:
    """A missing value, and why it is missing."""

    reason: str


class InventorySource:
    """The machine whose files are below ``root``.

    Only ordinary files are read, at most so many bytes of each, and bytes that are not UTF-8 become U+FFFD.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root
        self._prefix = str(root).rstrip("/")

    @property
    def is_this_machine(self) -> bool:
        """Return whether the kernel can be asked about it, too."""
        return self.root == Path("/")

    def read_bytes(self, path: str, most: int = _MOST_BYTES) -> bytes | Missing:
        """Return the first ``most`` bytes of the file ``path`` (absolute), or why there are none."""
        try:
            # A pipe in its place must not stop us.
            handle = os.open(self._prefix + path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            return _missing(error)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return Missing(NOT_THERE)
            return _read_all(handle, most)
        except OSError as error:
            return _missing(error)
        finally:
            os.close(handle)

    def text(self, path: str, most: int = _MOST_BYTES) -> str | Missing:
        """Return ``read_bytes`` as text without the white space around it."""
        content = self.read_bytes(path, most)
        return content if isinstance(content, Missing) else content.decode(errors="replace").strip("\0 \t\r\n")

    def line(self, path: str) -> str:
        """Return the text of a file of one line, or empty."""
        text = self.text(path)
        return "" if isinstance(text, Missing) else text.partition("\n")[0].rstrip()

    def lines(self, path: str, most: int = _MOST_BYTES) -> list[str]:
        """Return the lines of a file, none where it cannot be read."""
        text = self.text(path, most)
        return [] if isinstance(text, Missing) else text.splitlines()

    def whole(self, path: str) -> int | None:
        """Return the whole number that a file is, if it is one."""
        return whole_number(self.line(path))

    def names(self, path: str) -> list[str]:
        """Return what a directory has, in natural order (cpu2 before cpu10), or nothing."""
        try:
            with os.scandir(self._prefix + path) as entries:
                names = [entry.name for entry, _ in zip(entries, range(_MOST_NAMES), strict=False)]
        except (OSError, ValueError):
            return []
        return sorted((_printable(name) for name in names), key=natural)

    def is_there(self, path: str) -> bool:
        try:
            return os.path.lexists(self._prefix + path)
        except ValueError:
            return False

    def link(self, path: str) -> str:
        """Return the last name of a symbolic link's target, such as the driver of a device, or empty."""
        try:
            return _printable(os.path.basename(os.readlink(self._prefix + path)))  # noqa: PTH115, PTH119 - speed
        except (OSError, ValueError):
            return ""

    def target(self, path: str) -> str:
        """Return the whole text of a symbolic link, or empty."""
        try:
            return _printable(os.readlink(self._prefix + path))  # noqa: PTH115 - speed
        except (OSError, ValueError):
            return ""


class SourceReading:
    """Reads the fields of one section; those without a value are under ``unknown``, each with its reason."""

    def __init__(self, source: InventorySource, *, absent: str = NOT_THERE) -> None:
        self.source = source
        self.unknown: dict[str, str] = {}
        self._absent = absent

    def text(self, field: str, path: str) -> str | None:
        """Return the first line of a file. An empty one is no value."""
        text = self.source.text(path)
        if isinstance(text, Missing):
            return self.lacks(field, self._absent if text.reason == NOT_THERE else text.reason)
        return text.partition("\n")[0].rstrip() or self.lacks(field, self._absent)

    def whole(self, field: str, path: str, scale: int = 1) -> int | None:
        """Return the whole number that a file is, times ``scale``."""
        value = self._parsed(field, path, whole_number)
        return None if value is None else value * scale

    def switch(self, field: str, path: str) -> bool | None:
        """Read a file of 0 or 1, or of N or Y."""
        return self._parsed(field, path, {"0": False, "1": True, "N": False, "Y": True}.get)

    def choice(self, field: str, path: str) -> str | None:
        """Return the marked word of a file such as ``none [mq-deadline] kyber``; a single word needs no mark."""
        return self._parsed(field, path, chosen)

    def lacks(self, field: str, reason: str) -> T | None:
        """Return ``None``, and record why ``field`` has no value."""
        self.unknown[field] = reason
        return None

    def _parsed(self, field: str, path: str, parse: Callable[[str], T | None]) -> T | None:
        text = self.text(field, path)
        if text is None:
            return None
        value = parse(text)
        if value is None:
            self.lacks(field, NOT_UNDERSTOOD)
        return value


def whole_number(text: str) -> int | None:
    """Return the decimal number that ``text`` is, if it fits 64 bits."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else None


def chosen(text: str) -> str | None:
    """Return the word in brackets, or the only word."""
    marked = re.findall(r"\[([^\[\]\s]+)\]", text)
    words = text.split()
    if len(marked) == 1:
        return str(marked[0])
    return words[0] if len(words) == 1 and not marked else None


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts numbers within names by their size."""
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+|[0-9]+", name)
    return [
        (0, int(part), "") if part.isascii() and part.isdigit() and len(part) <= 18 else (1, 0, part) for part in parts
    ]


def _read_all(handle: int, most: int) -> bytes:
    pieces: list[bytes] = []
    left = most
    while left > 0:
        piece = os.read(handle, left)
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _missing(error: OSError | ValueError) -> Missing:
    if isinstance(error, PermissionError):
        return Missing(NEEDS_ROOT)
    # A device that lacks something says so in many ways: ENOENT, EINVAL, EOPNOTSUPP, EIO, ENODATA …
    return Missing(NOT_THERE)


def _printable(name: str) -> str:
    return name.encode(errors="surrogateescape").decode(errors="replace")


# What all parts of an inventory have.


class InventorySection(BaseModel):
    """Facts about one thing. A field that is ``None`` is in ``unknown`` with the reason: ``needs root``, ``not offered
    by this device``.

    Fields of later versions are ignored, so that documents of any version can be compared.
    """

    model_config = ConfigDict(extra="ignore")
    unknown: dict[str, str] = Field(default_factory=dict)


# Privacy: which of the names that people choose may be published. The lists are in ``publishable.toml``.


LEFT_OUT: Final = "…"


@cache
def _patterns(name: str) -> tuple[frozenset[str], re.Pattern[str]]:
    plain = frozenset(pattern for pattern in _lists()[name] if not _WILD.search(pattern))
    wild = [translate(pattern) for pattern in _lists()[name] if pattern not in plain]
    return plain, re.compile("|".join(wild) if wild else "(?!)")


_WILD: Final = re.compile(r"[*?\[]")


@cache
def _lists() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("publishable.toml").read_text())


def is_publishable(kind: str, name: str) -> bool:
    """Return whether ``name`` is on the list ``kind`` of ``publishable.toml``."""
    plain, wild = _patterns(kind)
    return name in plain or wild.match(name) is not None


def published_value(kind: str, name: str, value: str) -> str:
    """Return ``value`` if the name is on the list or it is a switch or a small number, else ``…``. Never anything that
    looks like an address or an identifier, whatever the name.
    """
    if re.fullmatch(r"[0-9]{1,6}|0x[0-9a-f]{1,4}|[yYnN]|on|off|auto|yes|no|true|false|force|none|default", value):
        return value
    return value if is_publishable(kind, name) and not _IDENTIFIER.search(value) else LEFT_OUT


def published_mount_point(path: str) -> str:
    """Return ``path`` if every machine has such a place, else the last one above it with ``…`` behind."""
    known: list[str] = _lists()["mount_points"]
    if path in known:
        return path
    above = [place for place in known if path.startswith(f"{place.rstrip('/')}/")]
    return f"{max(above, key=len, default='/').rstrip('/')}/{LEFT_OUT}"


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return ``name``, or the first of ``name (2)``, ``name (3)`` … that is free."""
    used = set(taken)
    number = 2
    free = name
    while free in used:
        free = f"{name} ({number})"
        number += 1
    return free


_IDENTIFIER: Final = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-|UUID|LABEL|(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}|\d{1,3}(?:\.\d{1,3}){3}|"
    r"[0-9a-fA-F]{12,}|::|@|/home/|//"
)

"""Privacy: what of the names that people choose may be said. The lists are in ``publishable.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from fnmatch import translate
from functools import cache
from importlib.resources import files
from typing import Any, Final

LEFT_OUT: Final = "…"


@cache
def _patterns(name: str) -> re.Pattern[str]:
    """All patterns of a list as one."""
    return re.compile("|".join(translate(pattern) for pattern in _lists()[name]))


@cache
def _lists() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("publishable.toml").read_text())


def is_publishable(kind: str, name: str) -> bool:
    """Whether ``name`` is on the list ``kind`` of ``publishable.toml``."""
    return _patterns(kind).match(name) is not None


def published_value(kind: str, name: str, value: str) -> str:
    """``value`` if the name is on the list or it is a switch or a small number; else ``…``.

    Never anything that looks like an address or an identifier, whatever the name.
    """
    if re.fullmatch(r"[0-9]{1,6}|0x[0-9a-f]{1,4}|[yYnN]|on|off|auto|yes|no|true|false|force|none|default", value):
        return value
    return value if is_publishable(kind, name) and not _identifies(value) else LEFT_OUT


def published_mount_point(path: str) -> str:
    """``path`` if such a place is on every machine; else the last of those that it is below, and ``…``."""
    known: list[str] = _lists()["mount_points"]
    if path in known:
        return path
    above = [place for place in known if path.startswith(f"{place.rstrip('/')}/")]
    return f"{max(above, key=len, default='/').rstrip('/')}/{LEFT_OUT}"


def free_name(name: str, taken: Iterable[str]) -> str:
    """``name``, or the first of ``name (2)``, ``name (3)`` … that is not taken."""
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


def _identifies(value: str) -> bool:
    """Whether it holds a UUID, a label, a hardware or network address, a long hexadecimal number, a home."""
    return _IDENTIFIER.search(value) is not None

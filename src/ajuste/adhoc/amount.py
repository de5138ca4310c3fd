"""Amounts as people write them on a command line: shares, durations, sizes and numbers of blocks."""

from __future__ import annotations

import re
from typing import Final

from ajuste.adhoc.origin import HINT
from ajuste.model.error import Place, RequestError

_SECONDS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_MIB: Final = {"": 1.0, "M": 1.0, "MiB": 1.0, "G": 1024.0, "GiB": 1024.0}
_NUMBER: Final = r"([0-9]+(?:\.[0-9]+)?)"


def share(option: str, text: str) -> float:
    """``1%`` or ``0.01`` as 0.01. Raises RequestError."""
    match = re.fullmatch(_NUMBER + r"\s*(%?)", text.strip())
    if not match:
        raise wrong(option, text, "a share such as 1% or 0.01")
    return float(match[1]) / (100 if match[2] else 1)


def seconds(option: str, text: str) -> float:
    """``5m``, ``90s``, ``1.5h`` or plain seconds. Raises RequestError."""
    match = re.fullmatch(_NUMBER + r"\s*([a-z]*)", text.strip())
    if not match or match[2] not in _SECONDS or not float(match[1]):
        raise wrong(option, text, "a duration such as 90s, 5m or 1h")
    return float(match[1]) * _SECONDS[match[2]]


def mebibytes(option: str, text: str) -> int:
    """``512``, ``512MiB`` or ``2G`` in MiB. Raises RequestError."""
    match = re.fullmatch(_NUMBER + r"\s*([A-Za-z]*)", text.strip())
    if not match or match[2] not in _MIB:
        raise wrong(option, text, "a size such as 512MiB or 2GiB")
    return round(float(match[1]) * _MIB[match[2]])


def block_range(option: str, text: str) -> tuple[int, int]:
    """``20`` as 20 to 20, ``5..100`` as 5 to 100. Raises RequestError."""
    match = re.fullmatch(r"([0-9]{1,6})(?:\.\.([0-9]{1,6}))?", text.strip())
    if not match or not int(match[1]) or int(match[2] or match[1]) < int(match[1]):
        raise wrong(option, text, "a number of blocks such as 20, or a range such as 5..100")
    return int(match[1]), int(match[2] or match[1])


def wrong(option: str, text: str, expected: str, hint: str = HINT) -> RequestError:
    """The error of an option whose value is not what it should be."""
    return RequestError(f"expected {expected}", hint=hint, place=Place(f"{option} {text}"))

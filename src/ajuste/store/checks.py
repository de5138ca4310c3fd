"""Checksums of all that the store keeps, which tell damage by chance from what was written.

They are CRC-32, which no flipped bit and no torn run of up to 32 bits escapes. They tell no forgery: who can write the
store can write checksums.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from zlib import crc32

from pydantic_core import to_json

UNREADABLE: Final = (ValueError, TypeError, AttributeError, OverflowError, LookupError)
"""The errors of reading where damage made another type of a value, or no JSON."""
_CANONICAL: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True)


class DamageError(Exception):
    """The error of rows that are not what was written; the message names the row. Only for use inside of the store."""


def canonical(document: Any) -> bytes:
    """Return the one way in which a document is kept: compact JSON in ASCII, its parts in their own order."""
    return _CANONICAL.encode(document).encode("ascii")


def row_checksum(values: Sequence[Any]) -> int:
    """Return the checksum of a row: of its short values as JSON, then of its documents (bytes)."""
    check = crc32(to_json([value for value in values if not isinstance(value, bytes)]))
    for value in values:
        if isinstance(value, bytes):
            check = crc32(value, check)
    return check

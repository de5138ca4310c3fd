"""Checksums of all that the store keeps, which tell damage by chance from what was written.

They are CRC-32, which no flipped bit and no torn run of up to 32 bits escapes, and which costs a report of a million
trials little. They tell no forgery: who can write the store can write checksums.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final
from zlib import crc32

UNREADABLE: Final = (ValueError, TypeError, AttributeError, OverflowError)
"""What reading raises where damage made another type of a value, or no JSON."""


class DamageError(Exception):
    """What was read is not what was written; the message says which row. For use inside of the store only.

    ``run_id``: the run without which there would be no damage, where that is known.
    """

    def __init__(self, message: str, run_id: str = "") -> None:
        super().__init__(message)
        self.run_id = run_id


def serialised(value: Any) -> str:
    """``value`` as the store keeps it: the database engine writes documents by this very function."""
    return json.dumps(value)


_SORTED: Final = json.JSONEncoder(sort_keys=True)


def check_of(*values: Any) -> int:
    """The checksum of a row of a small table."""
    plain = [crc32(value) if isinstance(value, bytes) else value for value in values]
    return crc32(_SORTED.encode(plain).encode())


def figures_checks(run_id: str, rows: Iterable[Sequence[Any]]) -> list[int]:
    """The checksum of what the analysis reads of each trial: block, position, attempt, warm-up as 0 or 1, seed, status;
    metrics, what is not supported and what was written, as the JSON that is stored; configuration and reason.
    """
    return [
        crc32(
            f"{run_id} {block} {position} {attempt} {warm_up} {seed} {status}\n{metrics}\n{not_supported}\n{written}\n"
            f"{len(configuration)} {configuration}{reason}".encode()
        )
        for block, position, attempt, warm_up, seed, status, metrics, not_supported, written, configuration, reason in (
            rows
        )
    ]


def outputs_checks(rows: Iterable[Sequence[Any]]) -> list[int]:
    """The checksum of all else that is kept of each trial: the checksum of its figures, so that it is of that trial;
    when it started, the host's seconds, the events, the console.
    """
    return [
        crc32(events.encode(), crc32(f"{figures} {started} {host_seconds!r} {len(events)} {console}".encode()))
        for figures, started, host_seconds, events, console in rows
    ]

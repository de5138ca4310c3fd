"""Checksums of all that the store keeps, and tallies of how much that is.

A row carries the checksum of its values, so that a bit that flipped on a disk is noticed whenever the row is read. A
tally has the number and the sum of the checksums of rows that belong together, so that a row that is gone is noticed
too. They find damage, not forgery: who can write the store can write checksums.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

CHECK_BYTES: Final = 8
_HALF: Final = 1 << 63


class DamageError(Exception):
    """What was read is not what was written; the message says which row. For use inside of the store only."""


def serialised(value: Any) -> str:
    """``value`` as the store keeps it: the database engine writes documents by this very function."""
    return json.dumps(value)


def check_of(*values: Any) -> int:
    """The checksum of a row of few: BLAKE2b over its values as JSON, as a signed number of 64 bits."""
    plain = [blake2b(value).hexdigest() if isinstance(value, bytes) else value for value in values]
    return _number(json.dumps(plain, sort_keys=True).encode())


def figures_check(*values: Any) -> int:
    """The checksum of the figures of a trial; for its arguments see ``figures_text``."""
    return _number(figures_text(*values))


def figures_text(
    run_id: str,
    block: int,
    position: int,
    attempt: int,
    warm_up: bool,
    seed: str,
    status: str,
    metrics: str,
    not_supported: str,
    written: str,
    configuration: str,
    reason: str,
) -> bytes:
    """All that the analysis reads of a trial as one text, different for different values. ``metrics``,
    ``not_supported`` and ``written`` are JSON as it is stored, without line breaks.
    """
    return (
        f"{run_id} {block} {position} {attempt} {warm_up:d} {seed} {status}\n{metrics}\n{not_supported}\n{written}\n"
        f"{len(configuration)} {configuration}{reason}"
    ).encode()


def figures_checks(run_id: str, *columns: Iterable[Any]) -> NDArray[np.int64]:
    """``figures_check`` of many trials, whose values come column by column."""
    digests = [
        blake2b(figures_text(run_id, *row), digest_size=CHECK_BYTES).digest() for row in zip(*columns, strict=True)
    ]
    return np.frombuffer(b"".join(digests), ">i8").astype(np.int64)


def outputs_check(figures: int, started: str, host_seconds: float, events: str, console: str) -> int:
    """The checksum of all else that is kept of a trial, with the checksum of its ``figures``: so it is of that one."""
    return _number(f"{figures} {started} {host_seconds!r} {len(events)} {events}{console}".encode())


def total(checks: Iterable[int]) -> int:
    """The sum of checksums as a signed number of 64 bits, over which it wraps around."""
    return (sum(checks) + _HALF) % (2 * _HALF) - _HALF


def _number(text: bytes) -> int:
    return int.from_bytes(blake2b(text, digest_size=CHECK_BYTES).digest(), "big", signed=True)

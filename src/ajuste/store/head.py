"""What a run is found by and listed with, read quickly: nothing heavy is loaded for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from ajuste.store.checks import UNREADABLE, DamageError, check_of

STORE_VERSION: Final = 3
CHECKED_BYTES: Final = 16 << 20
"""A file up to this size is checked whenever it is opened: that takes some hundredths of a second."""
HEAD: Final = (
    *("id", "study", "fingerprint", "seed", "created", "ajuste", "begun", "taken_up", "unverified_before"),
    *("base", "deleted", "stopped", "kernel", "workload", "answer", "tags", "size_bytes"),
)
_TRUTHS: Final = tuple(map(HEAD.index, ("unverified_before", "deleted")))
_SCHEME: Final = "sqlite:///"


class Head(NamedTuple):
    """By what a run is found, and what is listed of it."""

    id: str
    study: str
    fingerprint: str
    seed: int
    created: str
    ajuste: str
    begun: int
    taken_up: int
    unverified_before: bool
    base: str
    deleted: bool
    stopped: str
    kernel: str
    workload: str
    answer: str
    tags: str
    size_bytes: int
    check: int


def verify_head(*values: Any) -> None:
    """Raises DamageError for the short values of a run that do not have the checksum after them."""
    if found_of(lambda: check_of(*values[:-1])) != values[-1]:
        raise DamageError(f"the entry of run {values[0]} is damaged: its checksum differs")


def found_of(check: Any) -> int | None:
    """The checksum, or None of what no row that was written can be: a type, or a text, that a flipped bit made."""
    try:
        found: int = check()
    except UNREADABLE:
        return None
    return found


def quick_heads(url: str) -> list[Head] | None:
    """Of all runs of a sound SQLite store of today's layout, the one begun last first. None of any other: only reading
    it with all means says what is wrong.
    """
    file = Path(url.removeprefix(_SCHEME))
    if not url.startswith(_SCHEME) or "?" in url or not file.is_file():
        return None
    try:
        with closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as connection:
            return _heads(connection, file)
    except (sqlite3.Error, DamageError, *UNREADABLE):
        return None


def _heads(connection: sqlite3.Connection, file: Path) -> list[Head] | None:
    for pragma in ("cell_size_check=ON", "trusted_schema=OFF"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("BEGIN")
    if connection.execute("SELECT version FROM store_version").fetchall() != [(STORE_VERSION,)]:
        return None
    if file.stat().st_size <= CHECKED_BYTES and connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        return None
    (tally,) = connection.execute(
        'SELECT rows, total, "check" FROM tallies WHERE run_id = ? AND kind = ?', ("", "runs")
    )
    found = [_head(row) for row in connection.execute(f'SELECT {", ".join(HEAD)}, "check" FROM runs')]
    counted = (len(found), sum(head.check for head in found))
    if check_of("", "runs", *counted) != tally[2] or counted != tally[:2]:
        return None
    return sorted(found, key=lambda head: (head.begun, head.id), reverse=True)


def _head(row: Sequence[Any]) -> Head:
    values = list(row)
    for place in _TRUTHS:
        values[place] = bool(values[place])
    if check_of(*values[:-1]) != values[-1]:
        raise DamageError(f"the entry of run {values[0]} is damaged")
    return Head(*values)

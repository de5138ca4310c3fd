"""What a run is found by and listed with, and what was said of it, read quickly: nothing heavy is loaded for it."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

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
Found = TypeVar("Found")


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


def run_named(found: Sequence[Head], text: str) -> str | None:
    """Which run has the id ``text``, or is that of the study of that name which was taken up last."""
    named = [head for head in found if text in (head.id, head.study) and not head.deleted]
    return max(named, key=lambda head: (head.taken_up, head.id)).id if named else None


def quick_heads(url: str) -> list[Head] | None:
    """Of all runs of a sound SQLite store of today's layout, the one begun last first. None of any other: only reading
    it with all means says what is wrong.
    """
    return _quickly(url, lambda _, found: found)


def quick_results(url: str, text: str) -> str | None:
    """What was said of the run that ``Store.find_run`` finds, from such a store; None if nothing that is kept is of all
    that the run has.
    """

    def read(connection: sqlite3.Connection, found: list[Head]) -> str | None:
        run = run_named(found, text)
        if run is None:
            return None
        (kept,) = connection.execute(
            'SELECT trials, total, recorded, document, "check" FROM results WHERE run_id = ?', (run,)
        )
        bases = {head.id: head.base for head in found}
        owners = [run]
        while bases[owners[-1]] and len(owners) <= len(found):
            owners.append(bases[owners[-1]])
        trials = [_tally(connection, owner, "trials") for owner in owners]
        recorded = [_tally(connection, owner, "recorded") for owner in owners]
        known = (
            sum(rows for rows, _ in trials),
            sum(total for _, total in trials),
            sum(total for _, total in recorded),
        )
        if kept[:3] != known or check_of(run, *kept[:4]) != kept[4]:
            return None
        return zlib.decompress(kept[3]).decode()

    return _quickly(url, read)


def _quickly(url: str, read: Callable[[sqlite3.Connection, list[Head]], Found | None]) -> Found | None:
    file = Path(url.removeprefix(_SCHEME))
    if not url.startswith(_SCHEME) or "?" in url or not file.is_file():
        return None
    try:
        with closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as connection:
            found = _heads(connection, file)
            return None if found is None else read(connection, found)
    except (sqlite3.Error, zlib.error, DamageError, *UNREADABLE, LookupError):
        return None


def _tally(connection: sqlite3.Connection, run_id: str, kind: str) -> tuple[int, int]:
    """How many rows of a kind a run has, and the sum of their checksums."""
    found = connection.execute(
        'SELECT rows, total, "check" FROM tallies WHERE run_id = ? AND kind = ?', (run_id, kind)
    ).fetchone()
    if found is None and kind == "recorded":
        return 0, 0
    if found is None or check_of(run_id, kind, *found[:2]) != found[2]:
        raise DamageError(f"the count of {kind} of run {run_id} is missing or damaged")
    return found[0], found[1]


def _heads(connection: sqlite3.Connection, file: Path) -> list[Head] | None:
    for pragma in ("cell_size_check=ON", "trusted_schema=OFF"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("BEGIN")
    if connection.execute("SELECT version FROM store_version").fetchall() != [(STORE_VERSION,)]:
        return None
    if file.stat().st_size <= CHECKED_BYTES and connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        return None
    found = [_head(row) for row in connection.execute(f'SELECT {", ".join(HEAD)}, "check" FROM runs')]
    if (len(found), sum(head.check for head in found)) != _tally(connection, "", "runs"):
        return None
    return sorted(found, key=lambda head: (head.begun, head.id), reverse=True)


def _head(row: Sequence[Any]) -> Head:
    values = list(row)
    for place in _TRUTHS:
        values[place] = bool(values[place])
    verify_head(*values)
    return Head(*values)

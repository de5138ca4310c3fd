"""What another process adds to a run, as it comes: for those who watch a run that goes on."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Final, Self

from pydantic_core import from_json

from ajuste.store.database import SqliteFile
from ajuste.store.engine import open_database, reading
from ajuste.store.tallies import owners

_AT_ONCE: Final = 100
_FOLLOWED: Final = (
    *("number", "block", "position", "attempt", "configuration"),
    *("warm_up", "status", "reason", "started", "host_seconds"),
)
"""Columns of a trial that a watcher needs, beside its metrics."""


@dataclass(frozen=True)
class NewTrial:
    """A trial as far as a watcher needs it. ``number`` grows with each that is kept."""

    number: int
    block: int
    position: int
    attempt: int
    configuration: str
    warm_up: bool
    status: str
    reason: str
    started: str
    host_seconds: float
    metrics: dict[str, float] = field(default_factory=dict)


class RunFollower:
    """A context manager with a connection of its own, so that looking never waits for what others read."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._database = open_database(url)
        self._version: object = None
        self._open = ExitStack()
        self._connection = (
            self._open.enter_context(self._database.connection()) if isinstance(self._database, SqliteFile) else None
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self._database.close()

    def changed(self) -> bool:
        """Whether another process or connection may have written since this was asked last. It costs next to nothing.

        Source: SQLite, PRAGMA data_version. A server is not asked: there the answer is always yes.
        """
        if self._connection is None:
            return True
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        before, self._version = self._version, version
        return bool(version != before)

    def since(self, run_id: str, number: int) -> Sequence[NewTrial]:
        """The trials of a run, and of those it is based on, that were kept after that with ``number``."""
        with reading(self._database, self._url) as transaction:
            own = owners(transaction, run_id)
            found = transaction.rows(
                f"SELECT {', '.join(_FOLLOWED)}, metrics FROM trials"
                f" WHERE run_id IN ({_places(own)}) AND number > ? ORDER BY number",
                *own,
                number,
            )
        return [
            NewTrial(**dict(zip(_FOLLOWED, row[:-1], strict=True)) | {"metrics": _figures(row[-1])}) for row in found
        ]

    def stopped(self, run_id: str) -> tuple[str, str] | None:
        """Why a run ended, also in words; empty while it goes on. None where it is gone."""
        with reading(self._database, self._url) as transaction:
            rows = transaction.rows("SELECT stopped, stopped_because FROM runs WHERE id = ?", run_id)
        return next(((stopped, because) for stopped, because in rows), None)

    def documents(self, run_ids: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """Of each run what it was asked (its resolved study) and what was said of it, as documents; the second is empty
        where nothing is kept. One that is damaged is left out: reading the run itself says what is wrong.
        """
        for start in range(0, len(run_ids), _AT_ONCE):
            some = run_ids[start : start + _AT_ONCE]
            with reading(self._database, self._url) as transaction:
                rows = transaction.rows(
                    "SELECT runs.id, runs.resolved, results.document FROM runs"
                    f" LEFT JOIN results ON results.run_id = runs.id WHERE runs.id IN ({_places(some)})",
                    *some,
                )
            for run_id, resolved, document in rows:
                with suppress(zlib.error, UnicodeError):
                    yield run_id, resolved, zlib.decompress(document).decode() if document else ""


def _places(values: Sequence[str]) -> str:
    return ", ".join("?" for _ in values)


def _figures(kept: object) -> dict[str, float]:
    found = from_json(kept) if isinstance(kept, str | bytes) else kept
    return {str(name): float(value) for name, value in found.items()} if isinstance(found, dict) else {}

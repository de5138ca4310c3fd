"""What another process adds to a run, as it comes: for those who watch a run that goes on."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Self

from pydantic_core import from_json
from sqlalchemy import select

from ajuste.store.engine import open_engine, reading
from ajuste.store.rows import owners
from ajuste.store.schema import SQLITE, ResultsRow, RunRow, TrialRow

_AT_ONCE: Final = 100


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
        self._engine = open_engine(url)
        self._version: object = None
        self._connection = self._engine.connect() if self._engine.dialect.name == SQLITE else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
        self._engine.dispose()

    def changed(self) -> bool:
        """Whether another process or connection may have written since this was asked last. It costs next to nothing.

        Source: SQLite, PRAGMA data_version. A server is not asked: there the answer is always yes.
        """
        if self._connection is None:
            return True
        version = self._connection.exec_driver_sql("PRAGMA data_version").scalar()
        self._connection.rollback()
        before, self._version = self._version, version
        return version != before

    def since(self, run_id: str, number: int) -> Sequence[NewTrial]:
        """The trials of a run, and of those it is based on, that were kept after that with ``number``."""
        columns = (
            *(TrialRow.number, TrialRow.block, TrialRow.position, TrialRow.attempt, TrialRow.configuration),
            *(TrialRow.warm_up, TrialRow.status, TrialRow.reason, TrialRow.started, TrialRow.host_seconds),
        )
        with reading(self._engine, self._url) as session:
            own = (TrialRow.run_id.in_(owners(session, run_id)), TrialRow.number > number)
            found = session.execute(select(*columns, TrialRow.metrics).where(*own).order_by(TrialRow.number)).all()
        return [
            NewTrial(
                number=row.number,
                block=row.block,
                position=row.position,
                attempt=row.attempt,
                configuration=row.configuration,
                warm_up=bool(row.warm_up),
                status=row.status,
                reason=row.reason,
                started=row.started,
                host_seconds=row.host_seconds,
                metrics=_figures(row.metrics),
            )
            for row in found
        ]

    def stopped(self, run_id: str) -> tuple[str, str] | None:
        """Why a run ended, also in words; empty while it goes on. None where it is gone."""
        with reading(self._engine, self._url) as session:
            row = session.execute(
                select(RunRow.stopped, RunRow.stopped_because).where(RunRow.id == run_id)
            ).one_or_none()
        return None if row is None else (row[0], row[1])

    def documents(self, run_ids: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """Of each run what it was asked (its resolved study) and what was said of it, as documents; the second is empty
        where nothing is kept. One that is damaged is left out: reading the run itself says what is wrong.
        """
        for start in range(0, len(run_ids), _AT_ONCE):
            some = run_ids[start : start + _AT_ONCE]
            joined = select(RunRow.id, RunRow.resolved, ResultsRow.document)
            wanted = joined.outerjoin(ResultsRow, ResultsRow.run_id == RunRow.id).where(RunRow.id.in_(some))
            with reading(self._engine, self._url) as session:
                rows = session.execute(wanted).all()
            for run_id, resolved, document in rows:
                with suppress(zlib.error, UnicodeError):
                    yield run_id, resolved, zlib.decompress(document).decode() if document else ""


def _figures(kept: object) -> dict[str, float]:
    found = from_json(kept) if isinstance(kept, str | bytes) else kept
    return {str(name): float(value) for name, value in found.items()} if isinstance(found, dict) else {}

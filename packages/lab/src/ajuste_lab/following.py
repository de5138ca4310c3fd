"""Following a run: the trials that another process adds, as they arrive."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Self

import sqlalchemy as sa
from pydantic_core import from_json

from ajuste.store import runs
from ajuste.store.engine import open_database
from ajuste.store.schema import DOCUMENTS, RESULTS, RUNS, STUDY, TRIALS

_AT_ONCE: Final = 100


@dataclass(frozen=True)
class NewTrial:
    """The part of a trial that a watcher needs. ``number`` grows with each stored trial."""

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
    """A context manager with its own connection, so that following never waits for other readers."""

    def __init__(self, url: str) -> None:
        self._database = open_database(url)
        self._version: object = None
        self._connection = self._database.engine.raw_connection() if self._database.file is not None else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
        self._database.close()

    def changed(self) -> bool:
        """Return whether another process or connection may have written since the last call. It costs next to nothing.

        Source: SQLite, PRAGMA data_version. A server is not asked: there the answer is always yes.
        """
        if self._connection is None:
            return True
        cursor = self._connection.cursor()
        cursor.execute("PRAGMA data_version")
        before, self._version = self._version, cursor.fetchone()
        cursor.close()
        return bool(self._version != before)

    def since(self, run_id: str, number: int) -> Sequence[NewTrial]:
        """Return the trials stored after ``number``, of a run and of those it is based on."""
        query = sa.select(TRIALS.c.number, TRIALS.c.figures).where(TRIALS.c.number > number).order_by(TRIALS.c.number)
        with self._database.reading() as connection:
            owners = [head.id for head in runs.owners(connection, run_id)]
            added = connection.execute(query.where(TRIALS.c.run_id.in_(owners))).all()
            new = []
            for trial, content in added:
                figures = from_json(content)
                values = figures.pop("slot") | figures
                known = {name: value for name, value in values.items() if name in NewTrial.__dataclass_fields__}
                new.append(NewTrial(number=trial, **known))
        return new

    def stopped(self, run_id: str) -> tuple[str, str] | None:
        """Return why a run ended, also in words; empty while it goes on. None where it is gone."""
        with self._database.reading() as connection:
            stopped = connection.scalar(sa.select(RUNS.c.stopped).where(RUNS.c.id == run_id))
            return None if stopped is None else (stopped, runs.read_study(connection, run_id)["stopped_because"])

    def documents(self, run_ids: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """Return of each run what it was asked (its resolved study) and its results, as documents; the second
        is empty where nothing is kept. One that is damaged is left out: reading the run itself says what is wrong.
        """
        c = DOCUMENTS.c
        for start in range(0, len(run_ids), _AT_ONCE):
            query = sa.select(c.run_id, c.kind, c.document).where(
                c.run_id.in_(run_ids[start : start + _AT_ONCE]), c.kind.in_((STUDY, RESULTS))
            )
            with self._database.reading() as connection:
                contents = {(run_id, kind): content for run_id, kind, content in connection.execute(query)}
            for run_id, kind in contents:
                if kind == STUDY:
                    with suppress(zlib.error, ValueError, LookupError, TypeError):
                        results = contents.get((run_id, RESULTS))
                        text = zlib.decompress(results).decode() if results else ""
                        yield run_id, json.loads(contents[run_id, STUDY])["resolved"], text

"""What is intact of a store, read row by row, whatever is damaged between: for checking and for salvaging."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Text, cast, literal_column, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import DeclarativeBase

from ajuste.model.error import RequestError, RunError
from ajuste.store.checks import UNREADABLE, DamageError
from ajuste.store.engine import connect, open_engine
from ajuste.store.rows import KINDS, RUNS, STORE, TRIALS, WHOLE, TrialTally, verified, verify_trials
from ajuste.store.schema import SQLITE, ColumnRow, DigestRow, MachineRow, RecordedRow, RunRow, TallyRow, TrialRow

_MOST: Final = 100
"""So many faults the database itself is asked for."""
_MOST_MISSED: Final = 1_000
"""So many places after one another are tried where nothing can be read, the later ones ever further apart."""
_PATIENCE: Final = 64
_AT_ONCE: Final = 1_000
SMALL: Final = (MachineRow, RecordedRow, DigestRow, ColumnRow)
Row = TypeVar("Row", bound=DeclarativeBase)


@dataclass
class Remains:
    """All rows of a store that verify, as they are read. ``damaged`` says in words what does not; it is complete once
    everything was read.
    """

    connection: Connection
    damaged: list[str] = field(default_factory=list)

    @property
    def _sqlite(self) -> bool:
        return self.connection.dialect.name == SQLITE

    def check_file(self) -> None:
        """What the database itself finds: pages, indexes, references. A server checks its own files."""
        if not self._sqlite:
            return
        for pragma in (f"integrity_check({_MOST})", "foreign_key_check"):
            try:
                found = [tuple(row) for row in self.connection.exec_driver_sql(f"PRAGMA {pragma}") if row[0] != "ok"]
            except (DatabaseError, UnicodeError) as error:
                found = [(str(getattr(error, "orig", error)),)]
            words = "the file" if pragma[0] == "i" else "a row that belongs to none"
            for row in found:
                self.damaged += [f"{words}: {line}" for line in " ".join(map(str, row)).splitlines()]

    def small(self, table: type[Row]) -> Iterator[Row]:
        """The rows of a table of few."""
        names = [column.key for column in table.__mapper__.column_attrs]
        for values in self._each(table, [_plain(getattr(table, name)) for name in names]):
            fields = dict(zip(names, values, strict=True))
            try:
                if "environment" in fields:
                    fields["environment"] = json.loads(fields["environment"])
                row: Row = verified(table(**fields))
            except DamageError as error:
                self.damaged.append(str(error))
            except UNREADABLE as error:
                self.damaged.append(f"a row of the table {table.__tablename__} cannot be read: {error}")
            else:
                yield row

    def trials(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """Rows of ``WHOLE``, each with its run."""
        for run_id, *row in self._each(TrialRow, [TrialRow.run_id, *WHOLE]):
            try:
                verify_trials(run_id, [row])
            except DamageError as error:
                self.damaged.append(str(error))
            else:
                yield run_id, row

    def _each(self, table: type[DeclarativeBase], columns: Sequence[Any]) -> Iterator[Sequence[Any]]:
        if not self._sqlite:
            yield from self.connection.execute(select(*columns).execution_options(yield_per=_AT_ONCE))
            return
        number: Any = literal_column(f'"{table.__tablename__}".rowid')
        query = select(number, *columns).select_from(table).order_by(number)
        last, missed = -1, 0
        while missed < _MOST_MISSED:
            try:
                for row in self.connection.execute(query.where(number > last).execution_options(yield_per=_AT_ONCE)):
                    last, missed = row[0], 0
                    yield row[1:]
            except (DatabaseError, *UNREADABLE) as error:
                said = error.orig if isinstance(error, DatabaseError) else error
                self.damaged.append(f"rows of the table {table.__tablename__} cannot be read: {said}")
                if isinstance(said, sqlite3.OperationalError) and "no such" in str(said):
                    return
                last, missed = last + 1 + missed // _PATIENCE, missed + 1
            else:
                return


@dataclass
class Findings:
    """What was looked at. ``unverified_before``: runs that are older than checksums."""

    runs: int = 0
    trials: int = 0
    unverified_before: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


def inspect_store(url: str) -> Findings:
    """Everything that the store at ``url`` keeps, verified. Raises RequestError where there is none, and nothing for
    what is damaged.
    """
    file = make_url(url).database if make_url(url).get_backend_name() == SQLITE else None
    if file is not None and not Path(file).is_file():
        raise RequestError(f"store {file} not found", hint="run a study first, or set AJUSTE_STORE or AJUSTE_HOME")
    damaged: list[str] = []
    try:
        engine = open_engine(url)
    except RunError as error:
        damaged.append(str(error))
        engine = connect(url)
    try:
        with engine.connect() as connection:
            return _inspected(Remains(connection, damaged))
    except (DatabaseError, UnicodeError) as error:
        return Findings(damaged=[*damaged, str(getattr(error, "orig", error))])
    finally:
        engine.dispose()


def _inspected(remains: Remains) -> Findings:
    found = Findings()
    remains.check_file()
    counted: dict[tuple[str, str], TrialTally] = defaultdict(TrialTally)
    for run in remains.small(RunRow):
        found.runs += 1
        counted[STORE, RUNS] = counted[STORE, RUNS].plus([run.check])
        counted[run.id, TRIALS] = counted[run.id, TRIALS]
        if run.unverified_before:
            found.unverified_before.append(run.id)
    for run_id, row in remains.trials():
        found.trials += 1
        counted[run_id, TRIALS] = counted[run_id, TRIALS].plus([row[11]])
    packed: dict[str, list[ColumnRow]] = defaultdict(list)
    for table in SMALL:
        for one in remains.small(table):
            if isinstance(one, ColumnRow):
                packed[one.run_id].append(one)
            if table in KINDS:
                key = (one.run_id, KINDS[table])  # type: ignore[attr-defined]
                counted[key] = counted[key].plus([one.check])  # type: ignore[attr-defined]
    kinds = {TRIALS, RUNS, *KINDS.values()}
    tallies = {
        (one.run_id, one.kind): TrialTally(one.rows, one.total) for one in remains.small(TallyRow) if one.kind in kinds
    }
    for run_id, kind in sorted(tallies.keys() | counted.keys()):
        kept, there = tallies.get((run_id, kind), TrialTally()), counted.get((run_id, kind), TrialTally())
        if kept != there:
            whose = f"run {run_id}" if run_id else "the store"
            remains.damaged.append(f"{there.rows} {kind} of {whose} are intact, {kept.rows} were counted")
    for run_id, columns in packed.items():
        if len(columns) != columns[0].columns:
            remains.damaged.append(
                f"{len(columns)} packed columns of run {run_id} are intact, not {columns[0].columns}"
            )
    found.damaged = list(dict.fromkeys(remains.damaged))
    return found


def _plain(column: Any) -> Any:
    return cast(column, Text) if column.key == "environment" else column

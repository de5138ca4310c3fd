"""A new store of all that is intact in a damaged one."""

from __future__ import annotations

import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.store.checks import UNREADABLE, DamageError
from ajuste.store.database import (
    Database,
    Transaction,
    database_at,
    file_of,
    remove_store,
    require_new,
    require_there,
    shown,
)
from ajuste.store.engine import open_database
from ajuste.store.head import STORE_VERSION
from ajuste.store.rows import WHOLE, keep_trials, verify_trials
from ajuste.store.schema import (
    ColumnRow,
    Kept,
    MachineRow,
    RecordedRow,
    RunRow,
    StoredRow,
    SuiteRow,
    TallyRow,
    TrialRow,
    put,
)
from ajuste.store.tallies import KINDS, RUNS, SMALL, STORE, TRIALS, TrialTally, keep_tally, sealed, tally, verified

# What is intact of a store, read row by row, whatever is damaged between: for checking and for salvaging.


_MOST: Final = 100
"""So many faults the database itself is asked for."""
_MOST_MISSED: Final = 1_000
"""So many places after one another are tried where nothing can be read, the later ones ever further apart."""
_PATIENCE: Final = 64


@dataclass
class Remains:
    """All rows of a store that verify, as they are read. ``damaged`` says in words what does not; it is complete once
    everything was read.
    """

    source: Transaction
    damaged: list[str] = field(default_factory=list)

    @property
    def _is_file(self) -> bool:
        return self.source.database.file is not None

    @property
    def errors(self) -> type[Exception]:
        """What is raised where nothing can be read."""
        return self.source.database.errors

    def check_file(self) -> None:
        """What the database itself finds: pages, indexes, references. A server checks its own files."""
        if not self._is_file:
            return
        for pragma in (f"integrity_check({_MOST})", "foreign_key_check"):
            try:
                found = [row for row in self.source.rows(f"PRAGMA {pragma}") if row[0] != "ok"]
            except (self.errors, UnicodeError) as error:
                found = [(str(error),)]
            words = "the file" if pragma[0] == "i" else "a row that belongs to none"
            for row in found:
                self.damaged += [f"{words}: {line}" for line in " ".join(map(str, row)).splitlines()]

    def small(self, table: type[Kept]) -> Iterator[Kept]:
        """The rows of a table of few."""
        for values in self._each(table, table.selected):
            try:
                row: Kept = verified(table.of(values))
            except DamageError as error:
                self.damaged.append(str(error))
            except UNREADABLE as error:
                self.damaged.append(f"a row of the table {table.table} cannot be read: {error}")
            else:
                yield row

    def trials(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """Rows of ``WHOLE``, each with its run."""
        for run_id, *row in self._each(TrialRow, f"run_id, {WHOLE}"):
            try:
                verify_trials(run_id, [row])
            except DamageError as error:
                self.damaged.append(str(error))
            else:
                yield run_id, row

    def _each(self, table: type[StoredRow], columns: str) -> Iterator[Sequence[Any]]:
        if not self._is_file:
            for rows in self.source.parts(f"SELECT {columns} FROM {table.table}", size=_AT_ONCE):
                yield from rows
            return
        query = f"SELECT rowid, {columns} FROM {table.table} WHERE rowid > ? ORDER BY rowid"
        last, missed = -1, 0
        while missed < _MOST_MISSED:
            try:
                for row in self.source.run(query, last):
                    last, missed = row[0], 0
                    yield row[1:]
            except (self.errors, *UNREADABLE) as error:
                self.damaged.append(f"rows of the table {table.table} cannot be read: {error}")
                if isinstance(error, sqlite3.OperationalError) and "no such" in str(error):
                    return
                last, missed = last + 1 + missed // _PATIENCE, missed + 1
            else:
                return


@dataclass
class Findings:
    """What was looked at. ``unverified_before``: runs that are older than checksums."""

    runs: int = 0
    trials: int = 0
    suites: int = 0
    unverified_before: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


def inspect_store(url: str) -> Findings:
    """Everything that the store at ``url`` keeps, verified. Raises RequestError where there is none, and nothing for
    what is damaged.
    """
    file = file_of(url)
    if file is not None:
        require_there(file)
    damaged: list[str] = []
    try:
        database = open_database(url)
    except RunError as error:
        damaged.append(str(error))
        database = database_at(url)
    try:
        with database.transaction() as source:
            return _inspected(Remains(source, damaged))
    except (database.errors, UnicodeError) as error:
        return Findings(damaged=[*damaged, str(error)])
    finally:
        database.close()


def _inspected(remains: Remains) -> Findings:
    found = Findings()
    remains.check_file()
    counted: dict[tuple[str, str], TrialTally] = defaultdict(TrialTally)
    bases: dict[str, str] = {}
    for run in remains.small(RunRow):
        found.runs += not run.deleted
        bases[run.id] = run.base
        counted[STORE, RUNS] = counted[STORE, RUNS].plus([run.check])
        counted[run.id, TRIALS] = counted[run.id, TRIALS]
        if run.unverified_before:
            found.unverified_before.append(run.id)
    for run_id, base in bases.items():
        if base and base not in bases:
            remains.damaged.append(f"run {base} is missing; run {run_id} has its trials")
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
    for _ in remains.small(SuiteRow):
        found.suites += 1
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


_AT_ONCE: Final = 1_000
_COUNTED: Final[tuple[type[MachineRow | RecordedRow], ...]] = (MachineRow, RecordedRow)
_SIDE_FILES: Final = ("-wal", "-journal")


@dataclass
class Salvaged:
    """How much is in the new store, and in words what is ``lost``."""

    runs: int = 0
    trials: int = 0
    lost: list[str] = field(default_factory=list)


def salvage(url: str, file: Path) -> Salvaged:
    """Make a store of all that is intact in the one at ``url``, which is only read. Runs that have lost trials can go
    on. Raises RequestError if ``file`` is there already, or there is nothing at ``url``; RunError where nothing can be
    read.
    """
    require_new(file)
    done = Salvaged()
    target = open_database(f"sqlite:///{file}")
    try:
        with _readable(url, done) as source, target.transaction(writes=True) as copied:
            _copy(Remains(source, done.lost), copied, done)
    except BaseException:
        target.close()
        remove_store(file)
        raise
    target.close()
    done.lost = list(dict.fromkeys(done.lost))
    return done


def _copy(remains: Remains, copied: Transaction, done: Salvaged) -> None:
    kept: dict[tuple[str, str], TrialTally] = {}
    with suppress(remains.errors):
        kept = {(one.run_id, one.kind): TrialTally(one.rows, one.total) for one in remains.small(TallyRow)}
    runs: dict[str, RunRow] = {}
    for run in remains.small(RunRow):
        runs[run.id] = run
        put(copied, run)
        keep_tally(copied, run.id, TRIALS, TrialTally())
    _copy_trials(remains, copied, runs, done)
    for table in _COUNTED:
        tallies: defaultdict[str, TrialTally] = defaultdict(TrialTally)
        for one in remains.small(table):
            if one.run_id in runs:
                put(copied, one)
                tallies[one.run_id] = tallies[one.run_id].plus([one.check])
        for run_id, counted in tallies.items():
            keep_tally(copied, run_id, KINDS[table], counted)
    for suite in remains.small(SuiteRow):
        put(copied, suite)
    done.runs = len(runs)
    whole: set[str] = set()
    for run in sorted(runs.values(), key=lambda run: run.begun):
        there, before = tally(copied, run.id, TRIALS), kept.get((run.id, TRIALS))
        missing = f"{before.rows - there.rows} of {before.rows}" if before else "an unknown number of"
        if run.base and run.base not in whole:
            missing = f"its share of run {run.base}'s"
        elif there == before:
            whole.add(run.id)
            continue
        done.lost.append(f"run {run.id}: {missing} trials; it can go on")
        run.base = run.stopped = run.stopped_because = run.answer = ""
        put(copied, sealed(run))
    if (before := kept.get((STORE, RUNS))) is not None and before.rows != len(runs):
        done.lost.append(f"{before.rows - len(runs)} of {before.rows} runs")
    keep_tally(copied, STORE, RUNS, TrialTally().plus(run.check for run in runs.values()))


def _copy_trials(remains: Remains, copied: Transaction, runs: Collection[str], done: Salvaged) -> None:
    strays: defaultdict[str, int] = defaultdict(int)
    batch: list[dict[str, Any]] = []
    seen: set[tuple[Any, ...]] = set()  # Pages that refer to the wrong ones may show a row twice.
    for run_id, row in remains.trials():
        if (place := (run_id, *row[:3])) in seen:
            continue
        seen.add(place)
        if run_id not in runs:
            strays[run_id] += 1
            continue
        if batch and (batch[0]["run_id"] != run_id or len(batch) >= _AT_ONCE):
            keep_trials(copied, batch[0]["run_id"], batch)
            batch = []
        batch.append(_trial(run_id, row))
        done.trials += 1
    if batch:
        keep_trials(copied, batch[0]["run_id"], batch)
    done.lost += [f"{count} trials of run {run_id}, which itself is lost" for run_id, count in strays.items()]


def _trial(run_id: str, row: Sequence[Any]) -> dict[str, Any]:
    names = ("block", "position", "attempt", "warm_up", "seed", "status", "metrics", "not_supported", "written")
    found = dict(zip((*names, "configuration", "reason"), row, strict=False))
    found |= dict(zip(("started", "host_seconds", "events", "console"), row[12:], strict=False))
    return {**found, "run_id": run_id, "warm_up": bool(found["warm_up"])}


@contextmanager
def _readable(url: str, done: Salvaged) -> Iterator[Transaction]:
    """The store, or of a file a copy, so that not even SQLite's own recovery changes the original."""
    original = file_of(url)
    if original is None:
        database = database_at(url)
        with closing(database), database.transaction() as source:
            yield source
        return
    if not original.is_file():
        raise RequestError(f"store {original} not found", hint="set AJUSTE_STORE or AJUSTE_HOME to its place")
    with TemporaryDirectory(prefix="ajuste-salvage-") as directory:
        copy = Path(directory) / "store.sqlite"
        for end in ("", *_SIDE_FILES):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{original}{end}", f"{copy}{end}")
        with closing(_opened(copy, done)) as database, database.transaction() as source:
            yield source


def _opened(copy: Path, done: Salvaged) -> Database:
    """The copy, brought to this layout, without the runs that stand in the way of that."""
    url = f"sqlite:///{copy}"
    database = database_at(url)
    try:
        with database.transaction() as source:
            layout = source.value("SELECT version FROM store_version") or 1
    except database.errors:
        layout = STORE_VERSION  # Its tables say what can be read.
    while 1 <= layout < STORE_VERSION:
        database.close()
        try:
            return open_database(url)
        except AjusteError as error:
            damage = error.__cause__
            if not isinstance(damage, DamageError) or not damage.run_id:
                raise RunError(f"{shown(url)}: cannot salvage a damaged store of layout {layout}") from error
            done.lost.append(f"run {damage.run_id}: {damage}")
            database = database_at(url)
            _remove(database, damage.run_id)
    return database


def _remove(database: Database, run_id: str) -> None:
    with database.transaction(writes=True) as transaction:
        there = {name for (name,) in transaction.rows(database.tables)}
        for table in ("columns", "digests", "machines", "recorded", "taken_up", "trials"):
            if table in there:
                transaction.run(f'DELETE FROM "{table}" WHERE run_id = ?', run_id)
        transaction.run("DELETE FROM runs WHERE id = ?", run_id)

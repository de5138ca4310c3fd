"""Salvage of a store: its intact rows, read one by one, whatever is damaged between; also for checking."""

from __future__ import annotations

import shutil
from collections import Counter, namedtuple
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import sqlalchemy as sa

from ajuste.model.error import RequestError, RunError
from ajuste.store.checks import UNREADABLE, DamageError
from ajuste.store.engine import FAILURES, Database, open_database, require_plain, unusable
from ajuste.store.head import Head
from ajuste.store.location import new_store, require_there, store_file
from ajuste.store.runs import count_runs, documents, keep_study
from ajuste.store.schema import (
    DOCUMENTS,
    OF_TRIAL,
    RECORDED,
    RUNS,
    STORE,
    STUDY,
    SUITE,
    TRIALS,
    keep,
    replace,
    sealed,
    verified,
)

# So many faults the database itself is asked for.
_MOST: Final = 100
# So many places after one another are tried where nothing can be read, the later ones ever further apart.
_MOST_MISSED: Final = 1_000
_PATIENCE: Final = 64
_AT_ONCE: Final = 1_000


@dataclass
class Remains:
    """The rows of a store that verify, as they are read. ``damaged`` says in words what does not; it is complete once
    everything was read.
    """

    source: sa.Connection
    damaged: list[str] = field(default_factory=list)

    def check_file(self) -> None:
        """Note what the database itself finds: pages and indexes. A server checks its own files."""
        if self.source.dialect.name == "sqlite":
            try:
                faults = self.source.exec_driver_sql(f"PRAGMA integrity_check({_MOST})").scalars().all()
            except (*FAILURES, UnicodeError) as error:
                faults = [_message(error)]
            self.damaged += [f"the file: {line}" for text in faults if text != "ok" for line in str(text).splitlines()]

    def each(self, table: sa.Table) -> Iterator[Any]:
        """Read the rows of a table that verify; the number of a trial is no part of them."""
        for row in self._each(table, OF_TRIAL if table is TRIALS else list(table.c)):
            try:
                yield verified(table, row)
            except DamageError as error:
                self.damaged.append(str(error))

    def _each(self, table: sa.Table, columns: list[sa.Column[Any]]) -> Iterator[Any]:
        if self.source.dialect.name != "sqlite":
            yield from self.source.execute(sa.select(*columns), execution_options={"yield_per": _AT_ONCE})
            return
        rowid: sa.ColumnElement[int] = sa.literal_column("rowid")
        made: Any = namedtuple("Row", [column.name for column in columns])  # type: ignore[misc] # noqa: PYI024
        last, missed = -1, 0
        while missed < _MOST_MISSED:
            try:
                for number, *row in self.source.execute(sa.select(rowid, *columns).where(rowid > last).order_by(rowid)):
                    last, missed = number, 0
                    yield made(*row)
            except (*FAILURES, *UNREADABLE) as error:
                self.damaged.append(f"rows of the table {table.name} cannot be read: {_message(error)}")
                if "no such" in str(error):
                    return
                last, missed = last + 1 + missed // _PATIENCE, missed + 1
            else:
                return


def _message(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error)


@dataclass
class Findings:
    """The counts of what was checked, and what of it is ``damaged``, in words."""

    runs: int = 0
    trials: int = 0
    suites: int = 0
    damaged: list[str] = field(default_factory=list)


def inspect_store(url: str) -> Findings:
    """Verify everything that the store at ``url`` keeps. Raises RequestError where there is none or it is of a newer
    Ajuste, and nothing for what is damaged.
    """
    file = store_file(url)
    if file is not None:
        require_there(file)
    findings = Findings()
    try:
        database = open_database(url)
    except RunError as error:
        findings.damaged.append(str(error))
        database = Database(url)
    try:
        with database.reader.connect() as source:
            require_plain(source)
            _inspect(Remains(source, findings.damaged), findings)
    except (*FAILURES, UnicodeError, DamageError) as error:
        findings.damaged.append(_message(error))
    finally:
        database.close()
    findings.damaged = list(dict.fromkeys(findings.damaged))
    return findings


def _inspect(remains: Remains, findings: Findings) -> None:
    remains.check_file()
    heads = {row[0]: Head(*row) for row in remains.each(RUNS)}
    findings.runs = sum(not head.deleted for head in heads.values())
    trials, totals, recorded = Counter[str](), Counter[str](), Counter[str]()
    for row in remains.each(TRIALS):
        trials[row.run_id] += 1
        totals[row.run_id] += row.check
    studies = set()
    for row in remains.each(DOCUMENTS):
        if row.kind == STUDY:
            studies.add(row.run_id)
        elif row.kind == RECORDED:
            recorded[row.run_id] += row.check
        findings.suites += row.kind == SUITE
    findings.trials = trials.total()
    damaged = remains.damaged
    for head in heads.values():
        if head.base and head.base not in heads:
            damaged.append(f"run {head.base} is missing; run {head.id} has its trials")
        if head.id not in studies:
            damaged.append(f"the record of run {head.id} is missing")
        if (head.trials, head.total) != (trials[head.id], totals[head.id]):
            damaged.append(f"{trials[head.id]} trials of run {head.id} are intact, {head.trials} were counted")
        if head.recorded != recorded[head.id]:
            damaged.append(f"not all recordings of run {head.id} are intact")
    damaged += [f"run {run_id} is missing; it has trials" for run_id in trials if run_id not in heads]
    for counted in [row.runs for row in remains.each(STORE)] or [None]:
        if counted != len(heads):
            damaged.append(f"{len(heads)} runs of the store are intact, {counted or 'an unknown number'} were counted")


@dataclass
class Salvaged:
    """The counts of what is in the new store, and in words what is ``lost``."""

    runs: int = 0
    trials: int = 0
    lost: list[str] = field(default_factory=list)


def salvage(url: str, file: Path) -> Salvaged:
    """Make a store of all that is intact in the one at ``url``, which is only read. Runs that have lost trials can go
    on. Raises RequestError if ``file`` is there already, or there is nothing at ``url``; RunError where nothing can be
    read.
    """
    done = Salvaged()
    try:
        with (
            new_store(file) as made,
            closing(open_database(f"sqlite:///{made}")) as target,
            _readable(url) as source,
            target.writing() as copied,
        ):
            remains = Remains(source, done.lost)
            for table in (RUNS, DOCUMENTS, TRIALS):
                intact = remains.each(table)
                while batch := list(islice(intact, _AT_ONCE)):
                    # Pages that refer to the wrong ones may show a row twice.
                    keep(copied, table, batch, instead="OR IGNORE")
            counted = next((row.runs for row in remains.each(STORE)), None)
            _settle(copied, done, counted)
    except OSError as error:
        raise RequestError(
            f"{error.filename or file}: {error.strerror or error}", hint="choose a FILE that you can write"
        ) from error
    done.lost = list(dict.fromkeys(done.lost))
    return done


def _settle(copied: sa.Connection, done: Salvaged, counted: int | None) -> None:
    # Remove what belongs to no run, and count what is there of each.
    runs_with_study = sa.select(DOCUMENTS.c.run_id).where(DOCUMENTS.c.kind == STUDY)
    copied.execute(RUNS.delete().where(RUNS.c.id.not_in(runs_with_study)))
    runs = sa.select(RUNS.c.id)
    columns = (sa.func.count(), sa.func.sum(TRIALS.c.check))
    intact = {row[0]: row[1:] for row in copied.execute(sa.select(TRIALS.c.run_id, *columns).group_by(TRIALS.c.run_id))}
    copied.execute(TRIALS.delete().where(TRIALS.c.run_id.not_in(runs)))
    copied.execute(DOCUMENTS.delete().where(DOCUMENTS.c.kind != SUITE, DOCUMENTS.c.run_id.not_in(runs)))
    whole: set[str] = set()
    for head in (Head(*row) for row in copied.execute(RUNS.select().order_by(RUNS.c.begun)).all()):
        trials, total = intact.pop(head.id, (0, 0))
        recordings = documents(copied, RECORDED, head.id)
        now = head._replace(trials=trials, total=total, recorded=sum(row.check for row in recordings))
        if now.recorded != head.recorded:
            done.lost.append(f"recordings of run {head.id}")
        missing = f"{head.trials - trials} of {head.trials}"
        if head.base and head.base not in whole:
            missing = f"its share of run {head.base}'s"
        if (trials, total) == (head.trials, head.total) and (not head.base or head.base in whole):
            whole.add(head.id)
        else:
            done.lost.append(f"run {head.id}: {missing} trials; it can go on")
            now = now._replace(base="", stopped="", answer="")
            keep_study(copied, head.id, stopped_because="")
        replace(copied, RUNS, sealed(*now[:-1]))
        done.runs, done.trials = done.runs + 1, done.trials + trials
    done.lost += [f"{count} trials of run {run_id}, which itself is lost" for run_id, (count, _) in intact.items()]
    if counted is not None and counted != done.runs:
        done.lost.append(f"{counted - done.runs} of {counted} runs")
    count_runs(copied, done.runs)


@contextmanager
def _readable(url: str) -> Iterator[sa.Connection]:
    # The store, or of a file a copy, so that not even SQLite's own recovery changes the original.
    original = store_file(url)
    with TemporaryDirectory(prefix="ajuste-salvage-") as directory:
        copy = Path(directory) / "store.sqlite"
        if original is not None:
            require_there(original)
            for end in ("", "-wal", "-journal"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(f"{original}{end}", f"{copy}{end}")
        with closing(Database(url if original is None else f"sqlite:///{copy}")) as database:
            try:
                with database.reader.connect() as source:
                    require_plain(source)
                    yield source
            except (*FAILURES, DamageError) as error:
                raise unusable(url, error, "read") from error

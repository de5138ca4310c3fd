"""Looking after a store: a copy of it, how large it is, what runs can go, and forgetting them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ajuste.machine.files import give_to_caller
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.store.checks import DamageError
from ajuste.store.database import file_of, remove_store, require_new, require_there, shown
from ajuste.store.engine import lock_name, only_one, open_database, unusable
from ajuste.store.head import Head, RunNotes
from ajuste.store.salvage import Findings, inspect_store
from ajuste.store.schema import ColumnRow, RecordedRow, ResultsRow, RunRow, StoredRow, TrialRow
from ajuste.store.store import Store
from ajuste.store.tallies import bytes_of, heads

_PARTS: Final[dict[str, tuple[type[StoredRow], tuple[str, ...]]]] = {
    "outputs": (TrialRow, ("events", "console")),
    "figures": (TrialRow, ("metrics", "written", "not_supported", "reason")),
    "recordings": (RecordedRow, ("document",)),
    "kept figures": (ColumnRow, ("words", "numbers")),
    "results": (ResultsRow, ("document",)),
    "study and machine": (RunRow, ("resolved", "environment", "named")),
}
"""By kind of what a run takes room for: the table and the texts."""


def back_up(url: str, file: Path) -> Findings:
    """Copy the store at ``url``, as it is at one moment, to the new ``file``, and verify all that is in the copy.

    Raises RequestError if ``file`` is there already and for a server, RunError where the copy cannot be written or is
    not sound: then there is none.
    """
    original = _file(url, f"back it up with pg_dump --format=custom --file={file} --dbname={shown(url)}")
    require_new(file)
    require_there(original)
    try:
        _copy(original, file)
        give_to_caller(file)
        with TemporaryDirectory(prefix="ajuste-backup-", dir=file.parent) as directory:
            looked_at = Path(directory) / "store.sqlite"  # Opening one of an older layout would change it.
            _copy(file, looked_at)
            found = inspect_store(f"sqlite:///{looked_at}")
        if found.damaged:
            raise unusable(url, DamageError(found.damaged[0]), "copied")
    except (sqlite3.Error, OSError) as error:
        remove_store(file)
        raise RunError(f"cannot copy the store to {file}: {error}", hint="check disk space and permissions") from error
    except BaseException:
        remove_store(file)
        raise
    return found


def forget(runs: Sequence[Head], store: Store, home: Home) -> None:
    """Delete ``runs`` with their notes. Raises RequestError for one that another process measures."""
    with ExitStack() as stack:
        for run in runs:
            stack.enter_context(_held(run, store, home))
        store.delete(runs)
    notes = RunNotes(home)
    for run in runs:
        notes.forget(run.id)


def is_measured(run: Head, store: Store, home: Home) -> bool:
    """Whether another process measures it now."""
    try:
        with _held(run, store, home):
            return False
    except RequestError:
        return True


@contextmanager
def _held(run: Head, store: Store, home: Home) -> Iterator[None]:
    """Keep others from measuring a run that can go on. Raises RequestError where one does."""
    if run.stopped:
        yield
        return
    what = f"the study {run.study}"
    with (
        only_one(home.state / lock_name(run.fingerprint, run.seed), what),
        store.reserved(run.fingerprint, run.seed, what),
    ):
        yield


def _copy(original: str | Path, file: Path) -> None:
    with closing(sqlite3.connect(original)) as source, closing(sqlite3.connect(file)) as copy:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")


def _file(url: str, hint: str) -> Path:
    file = file_of(url)
    if file is None:
        raise RequestError(f"the store {shown(url)} is on a server; expected a file", hint=hint)
    return file


@dataclass(frozen=True)
class Sizes:
    """Bytes of a store: by run (its id, the newest first) and kind, and of its ``file`` in all (0 on a server)."""

    runs: dict[str, dict[str, int]]
    file: int


def sizes(url: str) -> Sizes:
    """What takes how much room."""
    database = open_database(url)
    try:
        with database.transaction() as transaction:
            found: dict[str, dict[str, int]] = {head.id: {} for head in heads(transaction)}
            for kind, (table, names) in _PARTS.items():
                whose = "id" if table is RunRow else "run_id"
                texts = bytes_of(database, table, names)
                query = f"SELECT {whose}, SUM({texts}) FROM {table.table} GROUP BY {whose}"
                for run_id, size in transaction.rows(query):
                    found.setdefault(run_id, {})[kind] = int(size or 0)
    except (database.errors, DamageError) as error:
        raise unusable(url, error, "read") from error
    finally:
        database.close()
    parts = (Path(f"{database.file}{end}") for end in ("", "-wal"))
    return Sizes(found, sum(part.stat().st_size for part in parts if part.is_file()) if database.file else 0)


@dataclass(frozen=True)
class Unwanted:
    """Which runs are to go: those that are all of what is asked."""

    failed: bool = False
    before: datetime | None = None
    untagged: bool = False

    def among(self, runs: Sequence[Head]) -> Iterator[Head]:
        for run in runs:
            old = self.before is None or datetime.fromisoformat(run.created) < self.before
            if old and (run.stopped == "failed" or not self.failed) and not (run.tags and self.untagged):
                yield run


def shrink(url: str) -> None:
    """Give the room of what was removed back to the disk. What cannot be now is used again by later runs."""
    if file_of(url) is None:
        return
    database = open_database(url)
    with closing(database), suppress(database.errors), database.connection() as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

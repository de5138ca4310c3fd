"""Opening a store: SQLite for one machine, PostgreSQL for several."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from ajuste.machine.lock import locked
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.store.checks import UNREADABLE, DamageError
from ajuste.store.database import OTHER_PLACE, Database, Transaction, database_at, file_of, shown
from ajuste.store.head import CHECKED_BYTES, STORE_VERSION
from ajuste.store.schema import TABLES, TallyRow, VersionRow, create
from ajuste.store.tallies import LAYOUT, RUNS, STORE, TrialTally, keep_tally, new_layout, tally

# One process at a time for a study and seed.


@contextmanager
def only_one(lock: Path, what: str) -> Iterator[None]:
    """Hold ``lock`` for as long as the context lasts. Raises RequestError if another process holds it: ``what`` is
    going on.
    """

    def refuse() -> None:
        raise _going_on(what)

    with ExitStack() as stack:
        try:
            stack.enter_context(locked(lock, waiting=refuse))
        except OSError as error:
            raise RequestError(
                f"cannot write to {lock.parent}: {error.strerror}", hint="set AJUSTE_HOME to another place"
            ) from error
        yield


@contextmanager
def held_on_server(database: Database, fingerprint: str, seed: int, what: str) -> Iterator[None]:
    """As ``only_one``, for all who share a database on a server; nothing where it is a file.

    Source: PostgreSQL manual, 13.3.5 Advisory Locks: they end with the connection, however that ends.
    """
    if database.file is not None:
        yield
        return
    number = int.from_bytes(hashlib.sha256(f"{fingerprint}:{seed}".encode()).digest()[:8], signed=True)
    with database.connection() as connection:
        if not connection.execute("SELECT pg_try_advisory_lock(%s)", [number]).fetchone()[0]:
            raise _going_on(what)
        try:
            yield
        finally:
            with suppress(database.errors):  # A connection that was lost holds nothing.
                connection.execute("SELECT pg_advisory_unlock(%s)", [number])


def _going_on(what: str) -> RequestError:
    return RequestError(
        f"another process runs {what}", hint="wait for it, or interrupt it; run the command again to resume"
    )


def lock_name(fingerprint: str, seed: int) -> str:
    """A file name for ``only_one`` that is the same for the same study and seed."""
    return hashlib.sha256(f"{fingerprint}:{seed}".encode()).hexdigest()[:24] + ".lock"


RECOVER: Final = "list the damage with ajuste store check; save all that is intact with ajuste store salvage -o FILE"
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NOT_ALLOWED: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)


def open_database(url: str) -> Database:
    """The store at ``url``, made if it is not there, and of this layout. Raises RequestError if it cannot be, or is of
    a newer Ajuste, RunError if it is damaged or its disk fails.
    """
    database = database_at(url)
    try:
        with database.transaction() as transaction:
            current = _layout(transaction, url) == STORE_VERSION
        if not current:
            with database.transaction(writes=True) as transaction:
                _settle(transaction, url)
        if database.file is not None and database.file.stat().st_size <= CHECKED_BYTES:
            require_sound(database)
    except (database.errors, DamageError, UnicodeError, OSError) as error:
        database.close()
        raise unusable(url, error, "opened") from error
    except AjusteError:
        database.close()
        raise
    return database


@contextmanager
def reading(database: Database, url: str) -> Iterator[Transaction]:
    """Everything that is read in it is of one moment. Raises RunError for what cannot be read."""
    try:
        with database.transaction() as transaction:
            yield transaction
    except (database.errors, DamageError) as error:
        raise unusable(url, error, "read") from error
    except UNREADABLE as error:
        raise unusable(url, DamageError(f"it has an unreadable value: {error}"), "read") from error


@contextmanager
def writing(database: Database, url: str) -> Iterator[Transaction]:
    """All that is written in it is kept, or nothing. Raises RunError for what cannot be written."""
    try:
        with database.transaction(writes=True) as transaction:
            yield transaction
    except database.doubled as error:
        raise RunError(
            f"the store already has this entry: {error}",
            hint="wait for another process with the same run, or stop it",
        ) from error
    except (database.errors, DamageError, UnicodeError) as error:
        raise unusable(url, error, "written") from error


def require_sound(database: Database) -> None:
    """Raises DamageError if the file of a store in SQLite is malformed: writing to it would damage more. A server
    looks after its own.
    """
    if database.file is None:
        return
    with database.transaction() as transaction:
        found = [str(text) for (text,) in transaction.rows("PRAGMA quick_check(3)")]
    if found != ["ok"]:
        raise DamageError("its file is malformed: " + "; ".join(line for text in found for line in text.splitlines()))


_ACTS: Final = "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%'"


def require_plain(transaction: Transaction) -> None:
    """Raises DamageError for the file of a store with a trigger or a view, which would act when it is read or written.
    Ajuste makes none.
    """
    if transaction.database.file is not None and (found := transaction.rows(_ACTS)):
        kind, name = found[0]
        raise DamageError(f"it has the {kind} {str(name)[:80]}, which Ajuste did not make")


def unusable(url: str, error: Exception, what: str) -> AjusteError:
    """Why the store cannot be ``what``, as people are told."""
    if isinstance(error, UnicodeError):  # The database quotes a damaged text in its message.
        error = DamageError(f"it has invalid text: {error}")
    if isinstance(error, DamageError):
        return RunError(f"the store {shown(url)} is damaged: {error}", hint=RECOVER)
    said = str(error).strip()
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _DAMAGED:
        return RunError(f"the store {shown(url)} cannot be {what}, its file is damaged: {said}", hint=RECOVER)
    if what == "opened" and (code in _NOT_ALLOWED or not code):
        return RequestError(f"the store {shown(url)} cannot be {what}: {said}", hint=OTHER_PLACE)
    if file_of(url) is None:
        said = said.partition("\n")[0]
        hint = "check that the server runs; earlier measurements are kept: run the same command again to resume"
        return RunError(f"the store {shown(url)} cannot be {what}: {said}", hint=hint)
    full = what == "written" or code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    hint = "check disk space and the database; earlier measurements are kept" if full else RECOVER
    return RunError(f"the store {shown(url)} cannot be {what}: {said}", hint=hint)


def _layout(transaction: Transaction, url: str) -> int:
    """Which layout a store has; 0 if it is empty. Raises DamageError, and RequestError for that of a newer Ajuste."""
    require_plain(transaction)
    there = {name for (name,) in transaction.rows(transaction.database.tables)}
    if not there & {table.table for table in TABLES}:
        return 0
    if VersionRow.table not in there:
        raise DamageError("its layout is missing")
    version = transaction.value(f"SELECT version FROM {VersionRow.table}") or 1
    if version == STORE_VERSION:
        return STORE_VERSION
    if version < 1 or (TallyRow.table in there and tally(transaction, STORE, LAYOUT).rows == STORE_VERSION):
        raise DamageError(f"it has two layouts, {version} and {STORE_VERSION}")
    if version > STORE_VERSION:
        raise RequestError(
            f"the store {shown(url)} has layout {version}; expected at most {STORE_VERSION}",
            hint="use a newer version of Ajuste",
        )
    return int(version)


def _settle(transaction: Transaction, url: str) -> None:
    """Make the tables of an empty store, and bring an older one to this layout, all or nothing."""
    layout = _layout(transaction, url)
    if layout == 0:
        for table in TABLES:
            create(transaction, table)
        keep_tally(transaction, STORE, RUNS, TrialTally())
        new_layout(transaction)
    elif layout < STORE_VERSION:
        from ajuste.store.migration import migrate  # It takes long to load.

        require_sound(transaction.database)
        migrate(transaction, layout)

"""Opening a store: a file of SQLite for one machine, or a PostgreSQL server for several."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from ajuste.machine.files import create_file, make_directory
from ajuste.machine.home import lacking
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.store.checks import UNREADABLE, DamageError
from ajuste.store.location import (
    OTHER_PLACE,
    STORE_URLS,
    going_on,
    lock_number,
    redact_password,
    require_file,
    store_file,
)
from ajuste.store.schema import ALEMBIC, LAYOUT, METADATA, STORE, keep, sealed, verified

CHECKED_BYTES: Final = 16 << 20
"""A file up to this size is checked whenever it is opened: that takes some hundredths of a second."""
RECOVER: Final = "list the damage with ajuste store check; save all that is intact with ajuste store salvage -o FILE"
FAILURES: Final = (sa.exc.SQLAlchemyError, sqlite3.Error)
"""The errors of a database that fails."""
# A disk with less than a few pages of SQLite's is full.
_ROOM_BYTES: Final = 64 << 10
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NOT_ALLOWED: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_PRAGMAS: Final = ("journal_mode=WAL", "synchronous=FULL", "cell_size_check=ON", "trusted_schema=OFF")
_ACTS: Final = "SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%'"
_DRIVER: Final = "postgresql+psycopg"


for _library in ("sqlalchemy", "psycopg"):  # ``unusable`` reports a lost connection, once.
    logging.getLogger(_library).addHandler(logging.NullHandler())

# A server that is cut off sends no end of the connection. Seconds; milliseconds for the last.
#
# Source: PostgreSQL documentation, "Parameter Key Words" of libpq.
_NOTICED: Final = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}


class Database:
    """The database at ``url``, which is not looked at yet; safe to use from several threads. Raises RequestError.

    ``file``: where it is, if it is a file.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.file = store_file(url)
        self.reader: sa.Engine
        self.writer: sa.Engine
        if self.file is not None:
            try:
                make_directory(self.file.parent)
            except OSError as error:
                raise RequestError(
                    f"cannot create the store's directory {self.file.parent}: {error.strerror}", hint=OTHER_PLACE
                ) from error
            require_file(self.file)
            self.engine = sa.create_engine(
                "sqlite://", creator=self._connected, poolclass=sa.pool.QueuePool, max_overflow=-1
            )
            sa.event.listen(self.engine, "begin", _begin)
            self.reader, self.writer = self.engine, self.engine.execution_options(writes=True)
        else:
            self.engine = sa.create_engine(_server(url), max_overflow=-1)
            self.reader, self.writer = self.engine.execution_options(isolation_level="REPEATABLE READ"), self.engine

    def _connected(self) -> sqlite3.Connection:
        assert self.file is not None
        try:
            create_file(self.file, 0o666).close()  # SQLite itself gives the files beside it to the owner of the store.
        except FileExistsError:
            pass
        except OSError as error:
            raise sqlite3.OperationalError(error.strerror) from error
        url = f"{self.file.absolute().as_uri()}?mode=rw"
        made = sqlite3.connect(url, uri=True, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            for pragma in _PRAGMAS:
                made.execute(f"PRAGMA {pragma}")
        except BaseException:
            made.close()
            raise
        return made

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Open a transaction in which all that is read is of one moment. Raises RunError for what cannot be read."""
        try:
            with self.reader.connect() as connection:
                yield connection
        except (DamageError, *FAILURES) as error:
            raise unusable(self.url, error, "read") from error
        except UNREADABLE as error:
            raise unusable(self.url, DamageError(f"it has an unreadable value: {error}"), "read") from error

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Open a transaction that is kept whole or not at all. Raises RunError for what cannot be written."""
        try:
            with self.writer.begin() as connection:
                yield connection
        except sa.exc.IntegrityError as error:
            raise RunError(
                f"the store already has this entry: {error.orig}",
                hint="wait for another process with the same run, or stop it",
            ) from error
        except (DamageError, UnicodeError, *FAILURES) as error:
            raise unusable(self.url, error, "written") from error

    @contextmanager
    def held(self, fingerprint: str, seed: int, what: str) -> Iterator[None]:
        """Hold a study and seed against all who share a server (see ``location.exclusive``); a file needs no more.

        Source: PostgreSQL manual, 13.3.5 Advisory Locks: they end with the connection, however that ends.
        """
        if self.file is not None:
            yield
            return
        number = lock_number(fingerprint, seed)
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            if not connection.scalar(sa.select(sa.func.pg_try_advisory_lock(number))):
                raise going_on(what)
            try:
                yield
            except BaseException:
                connection.invalidate()  # The server may not answer, and the person who interrupts waits.
                raise
            with suppress(*FAILURES):  # A connection that was lost holds nothing.
                connection.scalar(sa.select(sa.func.pg_advisory_unlock(number)))


def _begin(connection: sa.Connection) -> None:
    # A write takes its lock at once, not in the middle; also what is only read is of one moment.
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _server(url: str) -> sa.URL:
    name, separator, _ = url.partition("://")
    kind, _, driver = name.partition("+")
    if kind not in ("sqlite", "postgresql") and separator:
        raise RequestError(f"{kind} is not a store; expected {STORE_URLS}")
    try:
        if kind != "postgresql" or driver not in ("", "psycopg"):
            raise sa.exc.ArgumentError
        import psycopg  # noqa: F401

        wanted = sa.make_url(url).set(drivername=_DRIVER)
        return wanted.update_query_dict({name: _NOTICED[name] for name in _NOTICED.keys() - wanted.query.keys()})
    except sa.exc.ArgumentError as error:
        raise RequestError("the store's URL is not valid", hint=f"set AJUSTE_STORE to {STORE_URLS}") from error
    except ModuleNotFoundError as error:
        raise lacking(error) or error from None


_MAKING: Final = lock_number("the layout of the store", LAYOUT)


def open_database(url: str) -> Database:
    """Open the store at ``url``, made if it is not there. Raises RequestError if it cannot be opened or is of a newer
    Ajuste, RunError if it is damaged or its disk fails.
    """
    database = Database(url)
    try:
        with database.reader.connect() as connection:
            layout = _layout(connection, url)
        if layout < LAYOUT:
            with database.writer.begin() as connection:
                if database.file is None:  # Of those who begin a store at once one makes it, and the others wait.
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MAKING)))
                layout = _layout(connection, url)  # Another process may have been quicker.
                if layout < LAYOUT:
                    (upgrade if layout else _create)(connection)
        if database.file is not None and database.file.stat().st_size <= CHECKED_BYTES:
            require_sound(database)
    except (*FAILURES, DamageError, UnicodeError, OSError) as error:
        database.close()
        raise unusable(url, error, "opened") from error
    except AjusteError:
        database.close()
        raise
    return database


def require_sound(database: Database) -> None:
    """Raises DamageError if the file of a store is malformed: writing to it would damage more. A server looks after its
    own.
    """
    if database.file is None:
        return
    with database.reader.connect() as connection:
        faults = [str(text) for text in connection.exec_driver_sql("PRAGMA quick_check(3)").scalars()]
    if faults != ["ok"]:
        raise DamageError("its file is malformed: " + "; ".join(line for text in faults for line in text.splitlines()))


def require_plain(connection: sa.Connection) -> None:
    """Raises DamageError for a file with a trigger or a view, which would act when it is read or written: Ajuste makes
    none.
    """
    if connection.dialect.name == "sqlite" and (row := connection.exec_driver_sql(_ACTS).first()):
        raise DamageError(f"it has the {row[0]} {str(row[1])[:80]}, which Ajuste did not make")


def _layout(connection: sa.Connection, url: str) -> int:
    # Return the layout of a store; 0 if empty. Raises DamageError; RequestError for that of a newer Ajuste.
    require_plain(connection)
    tables = set(sa.inspect(connection).get_table_names())
    if not tables & set(METADATA.tables):
        return 0
    if not {STORE.name, "alembic_version"} <= tables:
        raise DamageError("its layout is missing")
    rows = connection.execute(STORE.select().limit(2)).all()
    layout = int(verified(STORE, rows[0] if rows else None).layout)
    # Alembic would upgrade from each row that it finds.
    versions = list(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars())
    if len(rows) > 1 or versions != [str(layout)]:
        several = dict.fromkeys([*map(str, versions), *(str(row.layout) for row in rows)])
        raise DamageError(
            f"it has several layouts: {', '.join(several)}" if len(several) > 1 else "its layout is damaged"
        )
    if layout > LAYOUT:
        raise RequestError(
            f"the store {redact_password(url)} has layout {layout}; expected at most {LAYOUT}",
            hint="use a newer version of Ajuste",
        )
    return layout


def _create(connection: sa.Connection) -> None:
    # Make an empty store as Alembic would, which takes as long to load as the rest.
    ALEMBIC.create(connection, checkfirst=False)  # One that is there belongs to somebody else.
    METADATA.create_all(connection)
    connection.execute(ALEMBIC.insert().values(version_num=str(LAYOUT)))
    keep(connection, STORE, [sealed(LAYOUT, 0)])


def upgrade(connection: sa.Connection) -> None:
    """Bring an older store to this layout, all or nothing."""
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(__file__).with_name("layouts")).replace("%", "%%"))
    command.upgrade(config, "head")
    runs = connection.scalar(sa.select(STORE.c.runs)) or 0
    connection.execute(STORE.delete())
    keep(connection, STORE, [sealed(LAYOUT, runs)])


def _full_disk(url: str) -> Path | None:
    # The directory of a store's file if its disk has no room; None where that is not so, or not known.
    file = store_file(url)
    if file is None:
        return None
    with suppress(OSError):
        return file.parent if shutil.disk_usage(file.parent).free < _ROOM_BYTES else None
    return None


def unusable(url: str, error: Exception, what: str) -> AjusteError:
    """Return a message on why the store cannot be ``what``."""
    error = getattr(error, "orig", None) or error
    if isinstance(error, UnicodeError):  # The database quotes a damaged text in its message.
        error = DamageError(f"it has invalid text: {error}")
    if isinstance(error, DamageError):
        return RunError(f"the store {redact_password(url)} is damaged: {error}", hint=RECOVER)
    message = str(error).strip()
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _DAMAGED:
        return RunError(
            f"the store {redact_password(url)} cannot be {what}, its file is damaged: {message}", hint=RECOVER
        )
    if store_file(url) is None:
        message = message.partition("\n")[0]
    if what == "opened" and (code in _NOT_ALLOWED or not code):
        return RequestError(f"the store {redact_password(url)} cannot be {what}: {message}", hint=OTHER_PLACE)
    if store_file(url) is None:
        hint = "check that the server runs; earlier measurements are kept: run the same command again to resume"
        return RunError(f"the store {redact_password(url)} cannot be {what}: {message}", hint=hint)
    failed = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    if failed and (directory := _full_disk(url)):
        # SQLite calls a full disk an I/O error where a file beside the store cannot grow.
        return RunError(
            f"the store {redact_password(url)} cannot be {what}: the disk of {directory} is full",
            hint="free space there and run the same command again to resume; earlier measurements are kept",
        )
    full = what == "written" or failed
    hint = "check disk space and the database; earlier measurements are kept" if full else RECOVER
    return RunError(f"the store {redact_password(url)} cannot be {what}: {message}", hint=hint)

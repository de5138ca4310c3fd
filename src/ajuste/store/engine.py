"""Opening a store: SQLite for one machine, PostgreSQL for several."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, NoSuchModuleError
from sqlalchemy.orm import Session

from ajuste.machine.files import make_directory
from ajuste.machine.installation import lacking
from ajuste.machine.lock import locked
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.store.checks import UNREADABLE, DamageError, serialised
from ajuste.store.head import CHECKED_BYTES, STORE_VERSION
from ajuste.store.rows import LAYOUT, RUNS, STORE, TrialTally, keep_tally, new_layout, tally
from ajuste.store.schema import POSTGRESQL, SQLITE, Base, TallyRow, VersionRow

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
def held_on_server(engine: Engine, fingerprint: str, seed: int, what: str) -> Iterator[None]:
    """As ``only_one``, for all who share a database on a server; nothing where it is a file.

    Source: PostgreSQL manual, 13.3.5 Advisory Locks: they end with the connection, however that ends.
    """
    if engine.dialect.name != POSTGRESQL:
        yield
        return
    number = int.from_bytes(hashlib.sha256(f"{fingerprint}:{seed}".encode()).digest()[:8], signed=True)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if not connection.scalar(select(func.pg_try_advisory_lock(number))):
            raise _going_on(what)
        try:
            yield
        finally:
            with suppress(DatabaseError):  # A connection that was lost holds nothing.
                connection.execute(select(func.pg_advisory_unlock(number)))


def _going_on(what: str) -> RequestError:
    return RequestError(
        f"another process runs {what}", hint="wait for it, or interrupt it; run the command again to resume"
    )


def lock_name(fingerprint: str, seed: int) -> str:
    """A file name for ``only_one`` that is the same for the same study and seed."""
    return hashlib.sha256(f"{fingerprint}:{seed}".encode()).hexdigest()[:24] + ".lock"


WRITING: Final = "ajuste_writing"
"""The execution option of connections that write: SQLite's lock for it is taken at once, not in the middle."""
RECOVER: Final = "list the damage with ajuste store check; save all that is intact with ajuste store salvage -o FILE"
_OTHER_PLACE: Final = "set AJUSTE_STORE or AJUSTE_HOME to another place"
_URLS: Final = "sqlite:////PATH/store.sqlite or postgresql://USER@HOST/DATABASE"
_DRIVER: Final = "psycopg"
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NOT_ALLOWED: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)


def open_engine(url: str) -> Engine:
    """The store at ``url``, made if it is not there, and of this layout. Raises RequestError if it cannot be, or is of
    a newer Ajuste, RunError if it is damaged or its disk fails.
    """
    engine = connect(url)
    try:
        with Session(engine) as session:
            current = _layout(session) == STORE_VERSION
        if not current:
            with Session(engine.execution_options(**{WRITING: True})) as session, session.begin():
                _settle(session, engine)
        if engine.dialect.name == SQLITE and _size(engine) <= CHECKED_BYTES:
            require_sound(engine)
    except (DatabaseError, DamageError) as error:
        engine.dispose()
        raise unusable(url, error, "opened") from error
    except UnicodeError as error:  # The database quotes a damaged text in its message.
        engine.dispose()
        raise unusable(url, DamageError(f"it has invalid text: {error}"), "opened") from error
    except AjusteError:
        engine.dispose()
        raise
    return engine


def connect(url: str) -> Engine:
    """An engine for whatever is at ``url``, which is not looked at yet. Raises RequestError."""
    parsed = _parse(url)
    try:
        engine = create_engine(parsed, json_serializer=serialised)
    except ModuleNotFoundError as error:
        raise lacking(error) or error from None
    if engine.dialect.name == SQLITE:
        _make_directory(parsed)
        event.listen(engine, "connect", _durable)
        event.listen(engine, "begin", _begin)
    return engine


@contextmanager
def reading(engine: Engine, url: str) -> Iterator[Session]:
    """Everything that is read in it is of one moment. Raises RunError for what cannot be read."""
    options = {} if engine.dialect.name == SQLITE else {"isolation_level": "REPEATABLE READ"}
    try:
        with Session(engine.execution_options(**options)) as session:
            yield session
    except (DatabaseError, DamageError) as error:
        raise unusable(url, error, "read") from error
    except engine.dialect.loaded_dbapi.Error as error:  # By the driver's own cursor.
        raise unusable(url, DatabaseError(None, None, error), "read") from error
    except UNREADABLE as error:
        raise unusable(url, DamageError(f"it has an unreadable value: {error}"), "read") from error


@contextmanager
def writing(engine: Engine, url: str) -> Iterator[Session]:
    """All that is written in it is kept, or nothing. Raises RunError for what cannot be written."""
    try:
        with Session(engine.execution_options(**{WRITING: True})) as session, session.begin():
            yield session
    except IntegrityError as error:
        raise RunError(
            f"the store already has this entry: {error.orig}",
            hint="wait for another process with the same run, or stop it",
        ) from error
    except (DatabaseError, DamageError) as error:
        raise unusable(url, error, "written") from error
    except UnicodeError as error:  # The database quotes a damaged text in its message.
        raise unusable(url, DamageError(f"it has invalid text: {error}"), "written") from error


def require_sound(engine: Engine) -> None:
    """Raises DamageError if the file of a store in SQLite is malformed: writing to it would damage more. A server
    looks after its own.
    """
    if engine.dialect.name != SQLITE:
        return
    with engine.connect() as connection:
        found = [str(text) for (text,) in connection.exec_driver_sql("PRAGMA quick_check(3)")]
    if found != ["ok"]:
        raise DamageError("its file is malformed: " + "; ".join(line for text in found for line in text.splitlines()))


def unusable(url: str, error: DatabaseError | DamageError, what: str) -> AjusteError:
    """Why the store cannot be ``what``, as people are told."""
    if isinstance(error, DamageError):
        return RunError(f"the store {shown(url)} is damaged: {error}", hint=RECOVER)
    said = str(error.orig).strip()
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    if code in _DAMAGED:
        return RunError(f"the store {shown(url)} cannot be {what}, its file is damaged: {said}", hint=RECOVER)
    if what == "opened" and (code in _NOT_ALLOWED or not code):
        return RequestError(f"the store {shown(url)} cannot be {what}: {said}", hint=_OTHER_PLACE)
    full = what == "written" or code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    hint = "check disk space and the database; earlier measurements are kept" if full else RECOVER
    return RunError(f"the store {shown(url)} cannot be {what}: {said}", hint=hint)


def shown(url: str) -> str:
    """``url`` as people may see it: without a password."""
    return make_url(url).render_as_string(hide_password=True)


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
        name = parsed.get_backend_name()
        if parsed.drivername == POSTGRESQL:
            parsed = parsed.set(drivername=f"{POSTGRESQL}+{_DRIVER}")
        parsed.get_dialect()
    except (ArgumentError, NoSuchModuleError) as error:
        raise RequestError("the store's URL is not valid", hint=f"set AJUSTE_STORE to {_URLS}") from error
    if name not in (SQLITE, POSTGRESQL):
        raise RequestError(f"{name} is not a store; expected {_URLS}")
    return parsed


def _make_directory(url: URL) -> None:
    if not url.database:
        return
    try:
        make_directory(Path(url.database).parent)
    except OSError as error:
        raise RequestError(f"cannot create the store's directory: {error}", hint=_OTHER_PLACE) from error


def _layout(session: Session) -> int:
    """Which layout a store has; 0 if it is empty. Raises DamageError, and RequestError for that of a newer Ajuste."""
    tables = set(inspect(session.connection()).get_table_names())
    if not tables & set(Base.metadata.tables):
        return 0
    if VersionRow.__tablename__ not in tables:
        raise DamageError("its layout is missing")
    version = session.scalar(select(VersionRow.version)) or 1
    if version == STORE_VERSION:
        return version
    if version < 1 or (TallyRow.__tablename__ in tables and tally(session, STORE, LAYOUT).rows == STORE_VERSION):
        raise DamageError(f"it has two layouts, {version} and {STORE_VERSION}")
    if version > STORE_VERSION:
        raise RequestError(
            f"the store {session.get_bind().engine.url} has layout {version}; expected at most {STORE_VERSION}",
            hint="use a newer version of Ajuste",
        )
    return version


def _settle(session: Session, engine: Engine) -> None:
    """Make the tables of an empty store, and bring an older one to this layout, all or nothing."""
    layout = _layout(session)
    if layout == 0:
        Base.metadata.create_all(session.connection())
        keep_tally(session, STORE, RUNS, TrialTally())
        new_layout(session)
    elif layout < STORE_VERSION:
        from ajuste.store.migration import migrate  # It takes long to load.

        require_sound(engine)
        migrate(session, layout)


def _size(engine: Engine) -> int:
    try:
        return Path(engine.url.database or "").stat().st_size
    except OSError:
        return 0


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(WRITING)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _durable(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # Transactions begin where ``_begin`` says, also those that only read.
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout=30000")
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA cell_size_check=ON")
    cursor.execute("PRAGMA trusted_schema=OFF")
    cursor.close()

"""Databases that a store can be in: a file of SQLite, or a PostgreSQL server. All that differs between them is here.

A statement has ``?`` where its values are. Each transaction has a connection to itself, which is used again later, so
that several threads may use one database.
"""

from __future__ import annotations

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from ajuste.machine.files import give_to_caller, make_directory
from ajuste.machine.installation import lacking
from ajuste.model.error import RequestError

SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql"
OTHER_PLACE: Final = "set AJUSTE_STORE or AJUSTE_HOME to another place"
_URLS: Final = "sqlite:////PATH/store.sqlite or postgresql://USER@HOST/DATABASE"
_FILE: Final = "sqlite:///"
_DRIVER: Final = "psycopg"


class Database(ABC):
    """One of them. ``errors`` are what its driver raises, ``doubled`` of them what tells that a key is there already;
    ``types`` are the names of SQL's types here. ``joins``: reads rows in the order of an index, so that it can join
    them without sorting; ``locked`` ends a query of rows that others are to wait for.
    """

    errors: type[Exception]
    doubled: type[Exception]
    types: ClassVar[Mapping[str, str]]
    joins: ClassVar[bool] = False
    locked: ClassVar[str] = ""
    tables: ClassVar[str]
    """The query of the names of all tables."""
    indexes: ClassVar[str]
    """The query of the names of the indexes of a table that no constraint has made."""
    file: Path | None = None
    """Where it is, if it is a file."""

    def __init__(self) -> None:
        self._idle: list[Any] = []

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """A connection of the driver, outside of a transaction. After an error it is not used again."""
        try:
            taken = self._idle.pop()
        except IndexError:
            taken = self._connected()
        try:
            yield taken
        except BaseException:
            with suppress(self.errors):
                taken.close()
            raise
        if not getattr(taken, "closed", False):  # The server may be gone.
            self._idle.append(taken)

    @contextmanager
    def transaction(self, *, writes: bool = False) -> Iterator[Transaction]:
        """All that is read in it is of one moment; all that is written is kept, or nothing."""
        with self.connection() as connection:
            connection.execute(self._begin(writes=writes))
            yield Transaction(self, connection)
            with nullcontext() if writes else suppress(self.errors):  # Of what was only read nothing can be lost.
                connection.execute("COMMIT" if writes else "ROLLBACK")

    def close(self) -> None:
        """Close the connections that nobody uses."""
        while self._idle:
            self._idle.pop().close()

    @abstractmethod
    def _connected(self) -> Any: ...

    @abstractmethod
    def _begin(self, *, writes: bool) -> str: ...

    @abstractmethod
    def octets(self, column: str, kind: str) -> str:
        """How many bytes the value of a column of this type has, for a query."""

    def statement(self, text: str) -> str:
        """As the driver takes it."""
        return text

    def taken(self, values: Sequence[Any]) -> Sequence[Any]:
        """Values as the driver takes them."""
        return values

    def given(self, rows: list[Any]) -> list[Any]:
        """Rows as they were written, of those that the driver gives."""
        return rows

    def cursor(self, connection: Any) -> Any:
        """One for rows that are more than the memory holds."""
        return connection.cursor()

    @contextmanager
    def any_text(self, connection: Any) -> Iterator[None]:
        """A text that is none is read as any other."""
        yield


class Transaction:
    """What is read and written in one."""

    def __init__(self, database: Database, connection: Any) -> None:
        self.database = database
        self._connection = connection

    def run(self, statement: str, *values: Any) -> Any:
        """Carry out a statement; returns the driver's cursor."""
        own = self.database
        return self._connection.execute(own.statement(statement), own.taken(values))

    def run_each(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Carry out a statement for each of ``rows``."""
        own = self.database
        with closing(self._connection.cursor()) as cursor:
            cursor.executemany(own.statement(statement), map(own.taken, rows))

    def rows(self, query: str, *values: Any) -> list[Any]:
        """All rows that a query finds."""
        return self.database.given(self.run(query, *values).fetchall())

    def value(self, query: str, *values: Any) -> Any:
        """The first value of the first row, or None."""
        return next((row[0] for row in self.rows(query, *values)), None)

    def parts(self, query: str, *values: Any, size: int) -> Iterator[list[Any]]:
        """The rows that a query finds, so many at a time."""
        own = self.database
        with closing(own.cursor(self._connection)) as cursor:
            cursor.execute(own.statement(query), own.taken(values))
            while rows := cursor.fetchmany(size):
                yield own.given(rows)

    @contextmanager
    def any_text(self) -> Iterator[None]:
        """A text that damage has made none is read as any other."""
        with self.database.any_text(self._connection):
            yield


class SqliteFile(Database):
    """A file of one machine."""

    errors = sqlite3.Error
    doubled = sqlite3.IntegrityError
    types: ClassVar[Mapping[str, str]] = {"big": "INTEGER", "serial": "INTEGER", "bytes": "BLOB", "real": "DOUBLE"}
    joins = True
    tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
    indexes = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?"

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file: Path = file
        try:
            make_directory(file.parent)
        except OSError as error:
            said = f"cannot create the store's directory {file.parent}: {error.strerror}"
            raise RequestError(said, hint=OTHER_PLACE) from error

    def _connected(self) -> Any:
        # Transactions begin where ``transaction`` says, also those that only read.
        is_new = not self.file.exists()
        made = sqlite3.connect(self.file, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            if is_new:
                give_to_caller(self.file)  # SQLite itself gives the files beside it to the owner of the store
            for pragma in (
                *("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"),
                *("cell_size_check=ON", "trusted_schema=OFF"),
            ):
                made.execute(f"PRAGMA {pragma}")
        except BaseException:
            made.close()
            raise
        return made

    def _begin(self, *, writes: bool) -> str:
        return "BEGIN IMMEDIATE" if writes else "BEGIN"  # Its lock is taken at once, not in the middle.

    def octets(self, column: str, kind: str) -> str:
        return f"LENGTH(CAST({column} AS BLOB))"

    @contextmanager
    def any_text(self, connection: Any) -> Iterator[None]:
        connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
        try:
            yield
        finally:
            connection.text_factory = str


class PostgresqlServer(Database):
    """A database for several machines. It takes no NUL in texts, and has other indexes for long ones."""

    types: ClassVar[Mapping[str, str]] = {
        "big": "BIGINT",
        "serial": "BIGSERIAL",
        "bytes": "BYTEA",
        "real": "DOUBLE PRECISION",
    }
    locked = " FOR UPDATE"
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    indexes = (
        "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND tablename = ?"
        " AND indexname NOT IN (SELECT conname FROM pg_constraint)"
    )

    def __init__(self, url: str) -> None:
        super().__init__()
        try:
            import psycopg
        except ModuleNotFoundError as error:
            raise lacking(error) or error from None
        self.errors, self.doubled = psycopg.Error, psycopg.IntegrityError
        self._connect = partial(psycopg.connect, url, autocommit=True)
        self._names = count()

    def _connected(self) -> Any:
        return self._connect()

    def _begin(self, *, writes: bool) -> str:
        return "BEGIN" if writes else "BEGIN ISOLATION LEVEL REPEATABLE READ"

    def octets(self, column: str, kind: str) -> str:
        return f"OCTET_LENGTH({column})" if kind == "bytes" else f"OCTET_LENGTH(CAST({column} AS TEXT))"

    def statement(self, text: str) -> str:
        return text.replace("?", "%s")

    def taken(self, values: Sequence[Any]) -> Sequence[Any]:
        return [escaped(value) if isinstance(value, str) else value for value in values]

    def given(self, rows: list[Any]) -> list[Any]:
        return [tuple(unescaped(value) if isinstance(value, str) else value for value in row) for row in rows]

    def cursor(self, connection: Any) -> Any:
        return connection.cursor(f"rows_{next(self._names)}")


def database_at(url: str) -> Database:
    """The one at ``url``, which is not looked at yet. Raises RequestError."""
    name, separator, rest = url.partition("://")
    kind, _, driver = name.partition("+")
    if kind == SQLITE and url.startswith(_FILE) and len(url) > len(_FILE):
        return SqliteFile(Path(url.removeprefix(_FILE)))
    if kind == POSTGRESQL and separator and driver in ("", _DRIVER):
        return PostgresqlServer(f"{POSTGRESQL}://{rest}")
    if kind in (SQLITE, POSTGRESQL) or not separator:
        raise RequestError("the store's URL is not valid", hint=f"set AJUSTE_STORE to {_URLS}")
    raise RequestError(f"{kind} is not a store; expected {_URLS}")


def file_of(url: str) -> Path | None:
    """Where a store is, if it is a file."""
    return Path(url.removeprefix(_FILE)) if url.startswith(_FILE) else None


def require_new(file: Path) -> None:
    """Raises RequestError if there is a file already, or a link, which would lead elsewhere."""
    if os.path.lexists(file):
        raise RequestError(f"{file} exists; expected a new file", hint="choose another name, or remove the file")


def require_there(file: Path) -> None:
    """Raises RequestError if a store's file is not there."""
    if not file.is_file():
        raise RequestError(f"store {file} not found", hint="run a study first, or set AJUSTE_STORE or AJUSTE_HOME")


def remove_store(file: Path) -> None:
    """With what SQLite keeps beside it."""
    for end in ("", "-wal", "-shm", "-journal"):
        Path(f"{file}{end}").unlink(missing_ok=True)


def shown(url: str) -> str:
    """``url`` as people may see it: without a password."""
    if url.startswith(_FILE):
        return url
    user, at, _ = urlsplit(url).netloc.rpartition("@")
    name, colon, password = user.partition(":")
    return url.replace(f"{name}:{password}@", f"{name}:***@", 1) if at and colon else url


# Texts of other programs, kept to the byte whatever the database takes.


_NUL: Final = "\0"
_MARK: Final = "\ue000"
"""Begins an escape; of the private use area, so that hardly any text has it."""


def escaped(text: str) -> str:
    """``text`` without NUL, which PostgreSQL takes in no text (manual, 8.3 Character Types)."""
    if _NUL not in text and _MARK not in text:
        return text
    return text.replace(_MARK, _MARK + "1").replace(_NUL, _MARK + "0")


def unescaped(text: str) -> str:
    """What ``escaped`` was given."""
    return text.replace(_MARK + "0", _NUL).replace(_MARK + "1", _MARK) if _MARK in text else text

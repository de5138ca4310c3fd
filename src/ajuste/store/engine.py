"""Opening a store: SQLite for one machine, PostgreSQL for several."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Engine, create_engine, event, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError
from sqlalchemy.orm import Session

from ajuste.model.error import RequestError
from ajuste.ownership import make_directory
from ajuste.store.schema import MEASURED, STORE_VERSION, Base, VersionRow

SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql"
_OTHER_PLACE: Final = "AJUSTE_STORE or AJUSTE_HOME names another place"
_URLS: Final = "sqlite:////PATH/store.sqlite or postgresql://USER@HOST/DATABASE"
_DRIVER: Final = "psycopg"


def open_engine(url: str) -> Engine:
    """The store at ``url``, made if it is not there. Raises RequestError if it cannot be, or is of a newer Ajuste."""
    parsed = _parse(url)
    try:
        engine = create_engine(parsed)
    except ImportError as error:
        raise RequestError(
            f"the store {shown(url)} needs the Python package {_DRIVER}, which is not installed",
            hint="uv sync --extra postgresql, or pip install 'ajuste[postgresql]'",
        ) from error
    if engine.dialect.name == SQLITE:
        _make_directory(parsed)
        event.listen(engine, "connect", _durable)
    try:
        version = _make_tables(engine)
    except DatabaseError as error:
        engine.dispose()
        raise RequestError(
            f"the store {shown(url)} cannot be opened: {str(error.orig).strip()}", hint=_OTHER_PLACE
        ) from error
    if version > STORE_VERSION:
        engine.dispose()
        raise RequestError(
            f"the store {shown(url)} has layout {version}, this Ajuste knows {STORE_VERSION}",
            hint="use a newer Ajuste",
        )
    return engine


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
        raise RequestError("the URL of the store cannot be understood", hint=f"AJUSTE_STORE: {_URLS}") from error
    if name not in (SQLITE, POSTGRESQL):
        raise RequestError(f"there is no store in {name}; expected {_URLS}")
    return parsed


def _make_directory(url: URL) -> None:
    if not url.database:
        return
    try:
        make_directory(Path(url.database).parent)
    except OSError as error:
        raise RequestError(f"the directory of the store cannot be made: {error}", hint=_OTHER_PLACE) from error


def _make_tables(engine: Engine) -> int:
    """Make what is missing; returns the version of the layout."""
    Base.metadata.create_all(engine)
    if engine.dialect.name == SQLITE:
        MEASURED.create(engine, checkfirst=True)  # Stores that are older than the index have the table already.
    with Session(engine) as session, session.begin():
        version = session.scalar(select(VersionRow.version))
        if version is None:
            session.add(VersionRow(version=STORE_VERSION))
    return version or STORE_VERSION


def _durable(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA busy_timeout=30000")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()

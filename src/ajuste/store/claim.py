"""One process at a time for a study and seed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sqlalchemy import Engine, func, select
from sqlalchemy.exc import DatabaseError

from ajuste.machine.lock import locked
from ajuste.model.error import RequestError
from ajuste.store.schema import POSTGRESQL


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

"""Where a store is, and who may measure into it: nothing here loads a database."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ajuste.machine.files import locked
from ajuste.model.error import RequestError

OTHER_PLACE: Final = "set AJUSTE_STORE or AJUSTE_HOME to another place"
STORE_URLS: Final = "sqlite:////PATH/store.sqlite or postgresql://USER@HOST/DATABASE"
_FILE: Final = "sqlite:///"


def store_file(url: str) -> Path | None:
    """Return where a store is, if it is a file."""
    return Path(url.removeprefix(_FILE)) if url.startswith(_FILE) and url != _FILE else None


def redact_password(url: str) -> str:
    """Return ``url`` as people may see it: without a password."""
    if url.startswith(_FILE):
        return url
    user, at, _ = urlsplit(url).netloc.rpartition("@")
    name, colon, password = user.partition(":")
    return url.replace(f"{name}:{password}@", f"{name}:***@", 1) if at and colon else url


def require_new(file: Path) -> None:
    """Raises RequestError if there is a file already, or a link, which would lead elsewhere."""
    if os.path.lexists(file):
        raise RequestError(f"{file} exists; expected a new file", hint="choose another name, or remove the file")


def require_there(file: Path) -> None:
    """Raises RequestError if a store's file is not there."""
    if not file.is_file():
        raise RequestError(f"store {file} not found", hint="run a study first, or set AJUSTE_STORE or AJUSTE_HOME")


def remove_store(file: Path) -> None:
    """Remove a store's file with what SQLite keeps beside it."""
    for end in ("", "-wal", "-shm", "-journal"):
        Path(f"{file}{end}").unlink(missing_ok=True)


# One process at a time for a study and seed.


@contextmanager
def exclusive(lock: Path, what: str) -> Iterator[None]:
    """Hold ``lock`` for as long as the context lasts. Raises RequestError if another process holds it: ``what`` is
    going on.
    """

    def refuse() -> None:
        raise going_on(what)

    with ExitStack() as stack:
        try:
            stack.enter_context(locked(lock, waiting=refuse))
        except OSError as error:
            raise RequestError(
                f"cannot write to {lock.parent}: {error.strerror}", hint="set AJUSTE_HOME to another place"
            ) from error
        yield


def lock_name(fingerprint: str, seed: int) -> str:
    """Return a file name for ``exclusive`` that is the same for the same study and seed."""
    return _study_hash(fingerprint, seed).hex()[:24] + ".lock"


def lock_number(fingerprint: str, seed: int) -> int:
    """Return what ``lock_name`` is in a file system, for a database: 64 bits."""
    return int.from_bytes(_study_hash(fingerprint, seed)[:8], signed=True)


def going_on(what: str) -> RequestError:
    """Return the error that another process runs ``what``."""
    return RequestError(
        f"another process runs {what}", hint="wait for it, or interrupt it; run the command again to resume"
    )


def _study_hash(fingerprint: str, seed: int) -> bytes:
    return hashlib.sha256(f"{fingerprint}:{seed}".encode()).digest()

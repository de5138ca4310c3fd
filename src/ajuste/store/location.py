"""Location of a store, and who may measure into it: nothing here loads a database."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

from ajuste.machine.files import locked, replaced
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


@contextmanager
def new_file(file: Path, *, mode: int = 0o600) -> Iterator[Path]:
    """Yield an empty file that becomes ``file`` at the end. Raises RequestError if there is anything already, OSError
    where it cannot be written.
    """
    try:
        with replaced(file, mode=mode, overwrite=False) as new:
            yield new
    except FileExistsError:
        raise RequestError(
            f"{file} exists; expected a new file", hint="choose another name, or remove the file"
        ) from None


@contextmanager
def new_store(file: Path) -> Iterator[Path]:
    """Yield where SQLite makes what becomes ``file`` at the end, as ``new_file``: in a directory of its own, because it
    follows names.
    """
    with new_file(file, mode=0o666) as new, TemporaryDirectory(prefix="ajuste-store-") as directory:
        made = Path(directory) / "store.sqlite"
        yield made
        shutil.copyfile(made, new)


def require_there(file: Path) -> None:
    """Raises RequestError if a store's file is not there, or is none."""
    if not file.exists():
        raise RequestError(f"store {file} not found", hint="run a study first, or set AJUSTE_STORE or AJUSTE_HOME")
    require_file(file)


def require_file(file: Path) -> None:
    """Raises RequestError for anything but a regular file, such as a FIFO; what is missing is fine."""
    if file.exists() and not file.is_file():
        raise RequestError(f"the store {file} is not a regular file", hint=OTHER_PLACE)


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

"""One process at a time for a study and seed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ajuste.machine.lock import locked
from ajuste.model.error import RequestError


@contextmanager
def only_one(lock: Path, what: str) -> Iterator[None]:
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


def going_on(what: str) -> RequestError:
    """The error that ``what`` is going on elsewhere."""
    return RequestError(
        f"another process runs {what}", hint="wait for it, or interrupt it; run the command again to resume"
    )


def lock_name(fingerprint: str, seed: int) -> str:
    """A file name for ``only_one`` that is the same for the same study and seed."""
    return hashlib.sha256(f"{fingerprint}:{seed}".encode()).hexdigest()[:24] + ".lock"

"""A file lock between processes. The kernel of the machine lets go of it when its owner ends, however that happens."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ajuste.ownership import make_directory


@contextmanager
def locked(file: Path, *, shared: bool = False, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold ``file`` (made if need be), alone or ``shared``. ``waiting`` is called once if another has it.

    Source: flock(2).
    """
    make_directory(file.parent)
    mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(descriptor, mode)
        yield
    finally:
        os.close(descriptor)

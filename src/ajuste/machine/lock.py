"""A file lock between processes. The kernel of the machine lets go of it when its owner ends, however that happens."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

from ajuste.machine.files import make_directory


@contextmanager
def holding(path: Path) -> Iterator[None]:
    """Say of a file or directory that it is in use: what is kept in a cache is not removed meanwhile. Raises OSError if
    it is not there (any more).
    """
    descriptor = _hold(path)
    try:
        yield
    finally:
        os.close(descriptor)


def hold(path: Path) -> None:
    """As ``holding``, until this process ends: a descriptor is left open."""
    _held_to_the_end(path, path.stat().st_ino)


@contextmanager
def unused(paths: Sequence[Path]) -> Iterator[bool]:
    """Whether nobody uses any of ``paths``; if so, nobody can begin to before the end. What is not there is unused."""
    with ExitStack() as stack:
        for path in paths:
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                continue
            stack.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
                return
        yield True


@cache
def _held_to_the_end(path: Path, _inode: int) -> int:
    """Once for each file, however often it is asked for."""
    return _hold(path)


def _hold(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if not _is_still(path, descriptor):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        with suppress(OSError):
            os.utime(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether what was locked is still there: the previous exclusive holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def locked(file: Path, *, shared: bool = False, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold ``file`` (made if need be), alone or ``shared``. ``waiting`` is called once if another has it.

    Source: flock(2).
    """
    mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    while True:
        make_directory(file.parent)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(descriptor, mode)
            if _is_still(file, descriptor):
                os.utime(descriptor)
                yield
                return
        finally:
            os.close(descriptor)

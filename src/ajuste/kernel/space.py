"""Disk space: asked for before anything is fetched."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ajuste.model.error import RequestError

HINT = "free some space, or let AJUSTE_HOME name a directory on another disk"

_UNUSABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG)


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.0f} MB"


def require_space(directory: Path, needed_bytes: int, purpose: str) -> None:
    """Raise RequestError unless ``directory`` (or what will be above it) has ``needed_bytes`` free."""
    existing = next(p for p in (directory, *directory.parents) if p.exists())
    status = os.statvfs(existing)
    free = status.f_bavail * status.f_frsize
    if free < needed_bytes:
        raise RequestError(
            f"not enough disk space for {purpose}: it needs {_mb(needed_bytes)} in {directory}, {_mb(free)} are free",
            hint=HINT,
        )


def out_of_space(directory: Path, purpose: str) -> RequestError:
    """The error for a disk that filled up meanwhile."""
    return RequestError(f"the disk became full while fetching {purpose} into {directory}", hint=HINT)


@contextmanager
def keeping_in(directory: Path, what: str) -> Iterator[None]:
    """Turn the errors of a directory that cannot be used into RequestError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise out_of_space(directory, what) from error
        # A directory above that cannot be made (in /proc, say) is told as one that is missing.
        unmade = error.errno == errno.ENOENT and directory.is_relative_to(error.filename or "/nowhere")
        if error.errno in _UNUSABLE or unmade:
            raise RequestError(
                f"cannot keep {what} in {directory}: {error.strerror} ({error.filename})",
                hint="let AJUSTE_HOME name a directory that you may write",
            ) from error
        raise

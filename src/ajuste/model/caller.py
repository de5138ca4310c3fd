"""The caller of sudo, and the files that they name: root reads no more of those than its caller could."""

from __future__ import annotations

import ctypes
import errno
import os
import pwd
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Final

from ajuste.model.error import RequestError

# Variables in which sudo(8) names its caller.
SUDO: Final = ("SUDO_UID", "SUDO_GID")

_AS_ROOT: Final = "in a shell of root's own, unset SUDO_UID and SUDO_GID"
SUDO_HINT: Final = "call Ajuste with sudo, or unset SUDO_UID and SUDO_GID to run commands as root"

LARGEST_ID: Final = 2**32 - 2
# Source: syscalls(2) of both machines.
_SETGROUPS: Final = {"x86_64": 116, "aarch64": 159}


def calling_ids(environment: Mapping[str, str] = os.environ) -> tuple[int, int] | None:
    """Return the user and group who called sudo, ``None`` if neither ``SUDO_UID`` nor ``SUDO_GID`` is set. Raises
    RequestError for one without the other and for anything else than two numbers.
    """
    if not any(name in environment for name in SUDO):
        return None
    uid, gid = (_number(name, environment) for name in SUDO)
    return uid, gid


def _number(name: str, environment: Mapping[str, str]) -> int:
    text = environment.get(name)
    if text is None:
        other = next(variable for variable in SUDO if variable != name)
        raise RequestError(f"{other} is set and {name} is not; expected both or none", hint=SUDO_HINT)
    if text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= LARGEST_ID:
        return int(text)
    raise RequestError(
        f"{name} = {text[:40]!r} is not a user or group ID; expected a number between 0 and {LARGEST_ID}",
        hint=SUDO_HINT,
    )


def open_given(file: Path) -> BufferedReader:
    """Open a regular file that a person named: under sudo as its caller, who gets no file through root that is closed
    to that user. Raises OSError.
    """
    try:
        with as_caller():
            return open_kept(file)
    except PermissionError as refused:
        if os.geteuid() == 0:  # Root itself would have been let in.
            refused.strerror = f"{refused.strerror} for the user who called sudo; {_AS_ROOT}"
        raise


def open_found(file: Path) -> BufferedReader:
    """Open a regular file of Ajuste's or the system's, as ``open_given``. Root also reads what is root's in every
    directory above it: the caller can have put nothing else there. Raises OSError.
    """
    try:
        with as_caller():
            return open_kept(file)
    except PermissionError:
        if os.geteuid() != 0:
            raise
    place = file.absolute()
    if not all(map(_is_roots, (place, *place.parents))):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
    return open_kept(file)


def require_given(file: Path) -> None:
    """Raise OSError as ``open_given`` for a file that is only copied later, by ``open_found``."""
    open_given(file).close()


def _is_roots(place: Path) -> bool:
    # Whether nobody else can put something else there.
    status = place.lstat()
    is_closed = not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or bool(status.st_mode & stat.S_ISVTX)
    return status.st_uid == 0 and is_closed and not stat.S_ISLNK(status.st_mode)


@contextmanager
def as_caller() -> Iterator[None]:
    """Let this thread, and no other, reach only the files that the caller of sudo could.

    Source: setfsuid(2), credentials(7).
    """
    ids = calling_ids() if os.geteuid() == 0 else None
    if ids is None or ids[0] == 0:
        yield
        return
    groups_before = os.getgroups()
    try:
        groups: Sequence[int] = groups_of(*ids)
    except KeyError:  # Of a user of another machine no more is known.
        groups = ids[1:]
    try:
        _reach_as(*ids, groups)
        yield
    finally:
        _reach_as(os.geteuid(), os.getegid(), groups_before)


def _reach_as(uid: int, gid: int, groups: Sequence[int]) -> None:
    libc = ctypes.CDLL(None)
    libc.setfsuid.restype = libc.setfsgid.restype = ctypes.c_uint32
    # setgroups(3) would change those of all threads.
    libc.syscall(_SETGROUPS[os.uname().machine], len(groups), (ctypes.c_uint32 * len(groups))(*groups))
    libc.setfsgid(gid)
    libc.setfsuid(uid)
    if (libc.setfsuid(-1), libc.setfsgid(-1), set(os.getgroups())) != (uid, gid, set(groups)):
        raise PermissionError(errno.EPERM, f"files cannot be read as the user {uid}")


def groups_of(uid: int, gid: int) -> tuple[int, ...]:
    """Return the groups of a user whose own is ``gid``. Raises KeyError for a user that the machine does not know."""
    return tuple(sorted(set(os.getgrouplist(pwd.getpwuid(uid).pw_name, gid))))


def open_kept(file: Path) -> BufferedReader:
    """Open a regular file for reading. Raises OSError for anything else, such as a FIFO, which blocks."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file; expected a regular file", str(file))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise

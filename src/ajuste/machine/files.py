"""Who owns what Ajuste keeps: directories that nobody else can change or lead elsewhere; who called sudo; file locks.

Root in particular must not write where another user decides what a name leads to.
"""

from __future__ import annotations

import errno
import fcntl
import grp
import hashlib
import os
import pwd
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from io import BufferedReader, BufferedWriter
from pathlib import Path
from secrets import token_hex
from typing import Final

from ajuste.model.error import RequestError

SUDO: Final = ("SUDO_UID", "SUDO_GID")
"""What sudo(8) says of the one who called it."""

SUDO_HINT: Final = "call Ajuste with sudo, or unset SUDO_UID and SUDO_GID to run commands as root"

_LARGEST_ID: Final = 2**32 - 2
_MOST_LINKS: Final = 40
"""As many as the kernel follows (path_resolution(7))."""


@dataclass(frozen=True)
class _Trusted:
    """Whose links are followed, and whose directories and files are used."""

    links: frozenset[int]
    directories: frozenset[int]


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
    if text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= _LARGEST_ID:
        return int(text)
    raise RequestError(
        f"{name} = {text[:40]!r} is not a user or group ID; expected a number between 0 and {_LARGEST_ID}",
        hint=SUDO_HINT,
    )


def require_no_foreign_link(directory: Path) -> None:
    """Raise RequestError where a link of another user, or of the one who called sudo, would lead root elsewhere."""
    if os.geteuid() != 0:
        return
    trusted = _trusted(os.environ).links
    for folder in (directory, *directory.absolute().parents):
        if folder.is_symlink() and (uid := folder.lstat().st_uid) not in trusted:
            raise RequestError(f"{folder} is a link owned by {user_name(uid)}", hint="name the directory itself")


def make_directory(directory: Path, mode: int = 0o700) -> None:
    """Make ``directory`` and every missing one above it, for this user alone unless ``mode`` says otherwise.

    Under sudo, what is made in a directory of the caller belongs to the caller. Raises RequestError where another
    user's link would lead root elsewhere.
    """
    require_no_foreign_link(directory)
    missing = [directory, *directory.parents]
    missing = missing[: next((i for i, folder in enumerate(missing) if folder.exists()), len(missing))]
    for folder in reversed(missing):
        try:
            folder.mkdir(mode=mode)
        except FileExistsError:
            # Somebody was faster, in a place where everybody may make files.
            require_trusted(folder)
        else:
            give_to_caller(folder)
    directory.mkdir(exist_ok=True)  # What is there and no directory is refused.


def give_to_caller(path: Path) -> None:
    """Under sudo, make a new file or directory the caller's, where its directory is the caller's or everybody's."""
    ids = _caller_who_owns(path.parent)
    if ids is not None:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            _give(descriptor, ids)
        finally:
            os.close(descriptor)


def _give(descriptor: int, ids: tuple[int, int]) -> None:
    there = os.fstat(descriptor)
    # The caller may have put something else there: root gives away only what it has just made.
    if there.st_uid == 0 and (stat.S_ISDIR(there.st_mode) or there.st_nlink == 1):
        os.fchown(descriptor, *ids)


def _caller_who_owns(directory: Path) -> tuple[int, int] | None:
    caller = calling_ids() if os.geteuid() == 0 else None
    if caller is None or caller[0] == 0:
        return None
    there = directory.stat()
    for_everybody = bool(there.st_mode & stat.S_ISVTX and there.st_mode & stat.S_IWOTH)
    return caller if for_everybody or there.st_uid == caller[0] else None


def require_trusted(directory: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse a directory for Ajuste's files that another user owns, can write, or can lead elsewhere.

    Owners that may be there: root, this user, and for root the user who called sudo. What is missing is fine.
    Raises RequestError (exit code 2).
    """
    trusted = _trusted(environment)
    links = 0
    at, rest = Path("/"), list(directory.absolute().parts[1:])
    while rest:
        part = rest.pop(0)
        if part == "..":
            at = at.parent
            continue
        try:
            status = (at / part).lstat()
        except FileNotFoundError:
            return
        except OSError as error:
            raise _refused(directory, at / part, f"is not accessible: {error.strerror}") from None
        _require_owner(directory, at / part, status, trusted)
        if not stat.S_ISLNK(status.st_mode):
            at = at / part
            _require_closed(directory, at, status, last=not rest)
            continue
        links += 1
        if links > _MOST_LINKS:
            raise _refused(directory, at / part, "has too many symbolic links")
        target = Path(os.readlink(at / part))  # noqa: PTH115 - its parts are wanted as they are
        rest = [*target.parts[target.is_absolute() :], *rest]
        at = Path("/") if target.is_absolute() else at


def _require_owner(directory: Path, at: Path, status: os.stat_result, trusted: _Trusted) -> None:
    is_link = stat.S_ISLNK(status.st_mode)
    # Root follows no link of the user who called sudo either.
    if status.st_uid in (trusted.links if is_link else trusted.directories):
        return
    raise _refused(directory, at, f"{'is a link owned by' if is_link else 'belongs to'} {user_name(status.st_uid)}")


def _require_closed(directory: Path, at: Path, status: os.stat_result, *, last: bool) -> None:
    # Nobody else may write there. Above the last one it is enough that nobody else may replace what is in it.
    if status.st_mode & stat.S_ISVTX and not last:
        return
    if status.st_mode & stat.S_IWOTH:
        raise _refused(directory, at, "is writable by every user", f"chmod o-w {at}")
    if status.st_mode & stat.S_IWGRP and not _is_private(status.st_gid, status.st_uid):
        raise _refused(directory, at, "is writable by other users of its group", f"chmod g-w {at}")


def _is_private(gid: int, uid: int) -> bool:
    # Whether a group has no other member than its user, as the groups that distributions make for each user.
    if gid == 0:
        return True
    try:
        members = set(grp.getgrgid(gid).gr_mem) | {user.pw_name for user in pwd.getpwall() if user.pw_gid == gid}
        return members <= {pwd.getpwuid(uid).pw_name, "root"}
    except KeyError:
        return False


def _refused(directory: Path, at: Path, why: str, mend: str = "") -> RequestError:
    where = f"{directory}: {at}" if at != directory else str(at)
    advice = "set AJUSTE_HOME to another directory"
    return RequestError(f"cannot store files in {where} {why}", hint=f"{mend}, or {advice}" if mend else advice)


def _trusted(environment: Mapping[str, str]) -> _Trusted:
    owners = frozenset({0, os.geteuid(), *_unmapped()})
    caller = calling_ids(environment) if os.geteuid() == 0 else None
    return _Trusted(links=owners, directories=owners | {caller[0]} if caller else owners)


def is_trusted(uid: int) -> bool:
    """Return whether files of ``uid`` may be relied on: root's, our own, and for root those of the sudo caller."""
    return uid in _trusted(os.environ).directories


def _unmapped() -> set[int]:
    # How a user namespace shows the owners outside of it (user_namespaces(7)): nobody in it can be one of them.
    try:
        mapped = sum(int(line.split()[2]) for line in Path("/proc/self/uid_map").read_text().splitlines())
        whole = mapped >= _LARGEST_ID
        return set() if whole else {int(Path("/proc/sys/kernel/overflowuid").read_text())}
    except (OSError, ValueError, IndexError):
        return set()


def write_text(path: Path, text: str) -> None:
    """Write the file that a person named, as ``open_named`` opens it."""
    with open_named(path) as file:
        file.write(text.encode())


@contextmanager
def replaced(path: Path, *, mode: int = 0o600) -> Iterator[Path]:
    """Yield an empty file that takes the place of ``path`` when the block ends without an error. Nobody else writes to
    it, not even in a container that shares the directory, where PIDs can be the same. Raises OSError.
    """
    require_no_foreign_link(path.parent)
    new = path.with_name(f".{path.name}.{token_hex(8)}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        if ids := _caller_who_owns(path.parent):
            _give(descriptor, ids)
    finally:
        os.close(descriptor)
    try:
        yield new
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def replace_file(path: Path, content: bytes, *, mode: int = 0o666, on_disk: bool = False) -> None:
    """Put ``content`` where ``path`` is, whole or not at all. ``on_disk`` waits until it is there. Raises OSError."""
    with replaced(path, mode=mode) as new, new.open("wb") as file:
        file.write(content)
        if on_disk:
            file.flush()
            os.fsync(file.fileno())


def sync_to_disk(path: Path) -> None:
    """Wait until what was written to a file, or changed in a directory, is on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_named(path: Path) -> BufferedWriter:
    """Open the file that a person named for writing; as root through no link and into no file of another user's making.
    Raises OSError, and RequestError for a file or link that another user has put there.
    """
    require_no_foreign_link(path.parent)
    ids = None
    try:
        status = path.lstat()
    except FileNotFoundError:
        flags = os.O_CREAT | os.O_EXCL
        ids = _caller_who_owns(path.parent)
    else:
        trusted = _trusted(os.environ)
        owners = trusted.links if stat.S_ISLNK(status.st_mode) else trusted.directories
        if os.geteuid() == 0 and status.st_uid not in owners:
            raise RequestError(
                f"{path} belongs to {user_name(status.st_uid)}; it is not overwritten",
                hint="choose another name, or remove the file",
            )
        if os.geteuid() == 0 and status.st_uid != 0 and stat.S_ISFIFO(status.st_mode):
            raise RequestError(f"{path} is a FIFO of {user_name(status.st_uid)}", hint="name a file")
        flags = os.O_TRUNC | (0 if stat.S_ISLNK(status.st_mode) else os.O_NOFOLLOW)
    # A FIFO that nobody reads is an error, and not waited for.
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags, 0o666)
    os.set_blocking(descriptor, True)
    if ids is not None:
        _give(descriptor, ids)
    return os.fdopen(descriptor, "wb")


def user_name(uid: int) -> str:
    """Return the name of a user, or the number where there is none."""
    try:
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"the user {uid}"


# What files hold, by their SHA-256; and files that are kept, which may have become anything since.


def file_sha256(file: Path) -> str:
    """Return the SHA-256 of the content, hexadecimal. Raises OSError, also for what is no regular file."""
    with open_kept(file) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def open_kept(file: Path) -> BufferedReader:
    """Open a regular file for reading. Raises OSError for anything else, such as a FIFO, which blocks."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(file))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_kept(file: Path) -> bytes:
    """Return the content of a regular file. Raises OSError."""
    with open_kept(file) as opened:
        return opened.read()


def sealed(text: str) -> str:
    """Return ``text`` of one line below its own checksum, for ``unsealed``."""
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}\n"


def unsealed(content: bytes) -> bytes:
    """Return what was sealed. Raises ValueError if it has changed."""
    digest, _, rest = content.partition(b"\n")
    text = rest.removesuffix(b"\n")
    if digest.decode("ascii", "replace") != hashlib.sha256(text).hexdigest() or rest == text:
        raise ValueError("its checksum differs")
    return text


# A file lock between processes. The kernel of the machine lets go of it when its owner ends, however that happens.


@contextmanager
def holding(path: Path) -> Iterator[None]:
    """Hold a file or directory in use, so that no cache removes it. Raises OSError if it is gone."""
    descriptor = _hold(path)
    try:
        yield
    finally:
        os.close(descriptor)


def hold(path: Path) -> None:
    """Hold as ``holding``, until this process ends: a descriptor is left open."""
    _held_to_the_end(path, path.stat().st_ino)


@contextmanager
def unused(paths: Sequence[Path]) -> Iterator[bool]:
    """Yield whether nobody uses any of ``paths`` (missing ones count); if so, nobody begins before the end."""
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
    # Once for each file, however often it is asked for.
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
    # Whether what was locked is still there: the previous exclusive holder may have removed it.
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

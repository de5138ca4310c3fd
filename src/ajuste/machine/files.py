"""Ownership of files: directories that nobody else can change or lead elsewhere; file locks.

Root in particular must not write where another user decides what a name leads to.
"""

from __future__ import annotations

import errno
import fcntl
import grp
import hashlib
import json
import os
import pwd
import shutil
import stat
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from io import BufferedWriter
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from ajuste.model.caller import LARGEST_ID, calling_ids, open_found
from ajuste.model.error import RequestError

_NAME_IT: Final = "name what it leads to"
_PATH: Final = os.O_PATH | os.O_CLOEXEC
# A FIFO that nobody reads is an error, and not waited for.
_OVERWRITE: Final = os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC
# As many as the kernel follows (path_resolution(7)).
_MOST_LINKS: Final = 40


@dataclass(frozen=True)
class _Trusted:
    # Whose links are followed, and whose directories and files are used.
    links: frozenset[int]
    directories: frozenset[int]


@contextmanager
def open_directory(directory: Path, *, make: int | None = None) -> Iterator[Path]:
    """Yield a path that leads to ``directory`` whatever becomes of its name. With ``make``, a mode, it is made if it is
    missing, and what is above it.

    Root follows no link that another user could have put there: raises RequestError for one. Raises OSError.
    """
    with closing(_steps(directory, make)) as steps:
        for step in steps:
            if step.is_link:
                _require_followed(step.path, step.status, step.above)
            elif step.is_last:
                held = os.dup(step.descriptor)
    there = Path(f"/proc/self/fd/{held}")
    try:
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(there))
        yield there
    except OSError as error:
        if isinstance(error.filename, str):  # People know it by its name.
            error.filename = error.filename.replace(str(there), str(directory), 1)
        raise
    finally:
        os.close(held)


def require_no_foreign_link(directory: Path) -> None:
    """Raise RequestError where a link that another user could have put there would lead root elsewhere."""
    with suppress(OSError), open_directory(directory):
        pass


def make_directory(directory: Path, mode: int = 0o700) -> None:
    """Make ``directory`` and every missing one above it, for this user alone unless ``mode`` says otherwise.

    Under sudo, what is made in a directory of the caller belongs to the caller. Raises as ``open_directory``.
    """
    with open_directory(directory, make=mode):
        pass


def _require_followed(link: Path, status: os.stat_result, above: os.stat_result) -> None:
    # Not even a link of root's, where another user can put it in the place of another name.
    if os.geteuid() != 0:
        return
    trusted = _trusted(os.environ).links
    if status.st_uid not in trusted:
        raise RequestError(f"{link} is a link owned by {user_name(status.st_uid)}", hint=_NAME_IT)
    directory = f"{link} is a link in a directory that"
    if above.st_uid not in trusted:
        raise RequestError(f"{directory} belongs to {user_name(above.st_uid)}", hint=_NAME_IT)
    if not above.st_mode & stat.S_ISVTX and (others := _writers(above)):
        raise RequestError(f"{directory} is writable by {others}", hint=_NAME_IT)


@dataclass(frozen=True)
class _Step:
    # What is on the way to a directory: one above it, a link or itself, with a descriptor (O_PATH) until the next.
    path: Path
    descriptor: int
    status: os.stat_result
    above: os.stat_result
    is_last: bool

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.status.st_mode)


def _steps(directory: Path, make: int | None = None) -> Generator[_Step]:
    # As path_resolution(7), each from the descriptor of the one before: what was looked at is what is used.
    at = os.open("/" if directory.is_absolute() else ".", _PATH)
    path, rest, links, follow = Path(), list(directory.parts or "."), 0, 0
    try:
        while rest:
            part, above = rest.pop(0), os.fstat(at)
            try:
                descriptor = _entered(part, at, _PATH | (follow or os.O_NOFOLLOW), make)
            except OSError as error:
                error.filename = str(path / part)
                raise
            try:
                step = _Step(path / part, descriptor, os.fstat(descriptor), above, not rest)
                yield step
                if not step.is_link:
                    path, at, descriptor, follow = step.path, descriptor, at, 0
                    continue
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, "too many symbolic links", str(step.path))
                if above.st_dev == Path("/proc").stat().st_dev:  # What it says is no path: the kernel knows.
                    rest, follow = [part, *rest], os.O_DIRECTORY
                else:
                    rest = [*(Path(os.readlink("", dir_fd=descriptor)).parts or "."), *rest]
            finally:
                os.close(descriptor)
    finally:
        os.close(at)


def _entered(part: str, at: int, flags: int, make: int | None) -> int:
    try:
        return os.open(part, flags, dir_fd=at)
    except FileNotFoundError:
        if make is None:
            raise
    try:
        os.mkdir(part, make, dir_fd=at)
    except FileExistsError:  # Somebody was faster, in a place where everybody may make files.
        descriptor = os.open(part, flags, dir_fd=at)
        if not is_trusted(owner := os.fstat(descriptor).st_uid):
            os.close(descriptor)
            raise RequestError(
                f"the new directory {part} belongs to {user_name(owner)}", hint="choose another place"
            ) from None
        return descriptor
    made = os.open(part, flags, dir_fd=at)
    if ids := _caller_who_owns(os.fstat(at)):
        _give(made, ids)
    return made


def give_to_caller(path: Path) -> None:
    """Under sudo, make a new file or directory the caller's, where its directory is the caller's or everybody's."""
    with open_directory(path.parent) as directory:
        if ids := _caller_who_owns(directory.stat()):
            descriptor = os.open(directory / path.name, _PATH | os.O_NOFOLLOW)
            try:
                _give(descriptor, ids)
            finally:
                os.close(descriptor)


def _give(descriptor: int, ids: tuple[int, int]) -> None:
    there = os.fstat(descriptor)
    # The caller may have put something else there: root gives away only what it has just made.
    if there.st_uid == 0 and (stat.S_ISDIR(there.st_mode) or (stat.S_ISREG(there.st_mode) and there.st_nlink == 1)):
        os.chown(f"/proc/self/fd/{descriptor}", *ids)


def _caller_who_owns(directory: os.stat_result) -> tuple[int, int] | None:
    caller = calling_ids() if os.geteuid() == 0 else None
    if caller is None or caller[0] == 0:
        return None
    for_everybody = bool(directory.st_mode & stat.S_ISVTX and directory.st_mode & stat.S_IWOTH)
    return caller if for_everybody or directory.st_uid == caller[0] else None


def require_trusted(directory: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse a directory for Ajuste's files that another user owns, can write, or can lead elsewhere.

    Owners that may be there: root, this user, and for root the user who called sudo. What is missing is fine.
    Raises RequestError (exit code 2).
    """
    trusted = _trusted(environment)
    try:
        with closing(_steps(directory.absolute())) as steps:
            for step in steps:
                if step.path != Path("/"):
                    _require_own(directory, step, trusted)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _refused(directory, Path(error.filename), f"is not accessible: {error.strerror}") from None


def _require_own(directory: Path, step: _Step, trusted: _Trusted) -> None:
    # Root follows no link of the user who called sudo either.
    if step.status.st_uid not in (trusted.links if step.is_link else trusted.directories):
        what = "is a link owned by" if step.is_link else "belongs to"
        raise _refused(directory, step.path, f"{what} {user_name(step.status.st_uid)}")
    # Nobody else may write there. Above the last one it is enough that nobody else may replace what is in it.
    if step.is_link or (step.status.st_mode & stat.S_ISVTX and not step.is_last):
        return
    if others := _writers(step.status):
        mend = f"chmod {'o' if step.status.st_mode & stat.S_IWOTH else 'g'}-w {step.path}"
        raise _refused(directory, step.path, f"is writable by {others}", mend)


def _writers(directory: os.stat_result) -> str:
    if directory.st_mode & stat.S_IWOTH:
        return "every user"
    shared = directory.st_mode & stat.S_IWGRP and not _is_private(directory.st_gid, directory.st_uid)
    return "other users of its group" if shared else ""


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
    advice = "set AJUSTE_HOME to another directory"
    return RequestError(
        f"cannot store files in {directory}: {at} {why}", hint=f"{mend}, or {advice}" if mend else advice
    )


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
        whole = mapped > LARGEST_ID
        return set() if whole else {int(Path("/proc/sys/kernel/overflowuid").read_text())}
    except (OSError, ValueError, IndexError):
        return set()


def write_text(path: Path, text: str, *, mode: int | None = None, on_disk: bool = False) -> None:
    """Write the file that a person named, as ``open_named`` opens it; with ``mode``, whatever its mode was. ``on_disk``
    waits until it is there.
    """
    with open_named(path) as file:
        file.write(text.encode())
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        if on_disk:
            file.flush()
            os.fsync(file.fileno())
    if on_disk:
        with open_directory(path.parent) as directory:
            sync_to_disk(directory)


@contextmanager
def replaced(path: Path, *, mode: int = 0o600, overwrite: bool = True) -> Iterator[Path]:
    """Yield an empty file that takes the place of ``path`` when the block ends without an error. Nobody else writes to
    it, not even in a container that shares the directory, where PIDs can be the same. Raises OSError, which is
    FileExistsError for what is there already and not to be overwritten.
    """
    with open_directory(path.parent) as directory:
        if not overwrite and os.path.lexists(directory / path.name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        new = directory / f".{path.name}.{token_hex(8)}.new"
        descriptor = _created(new, mode)
        try:
            yield Path(f"/proc/self/fd/{descriptor}")  # Its name may have been given to something else.
            if overwrite:
                new.replace(directory / path.name)
            else:
                os.link(new, directory / path.name, follow_symlinks=False)
        finally:
            os.close(descriptor)
            new.unlink(missing_ok=True)


def replace_file(path: Path, content: bytes, *, mode: int = 0o666, on_disk: bool = False) -> None:
    """Put ``content`` where ``path`` is, whole or not at all. ``on_disk`` waits until it is there. Raises OSError."""
    with replaced(path, mode=mode) as new, new.open("wb") as file:
        file.write(content)
        if on_disk:
            file.flush()
            os.fsync(file.fileno())


def remove_file(path: Path) -> None:
    """Remove a file or link, if it is there; as root through no link of another user. Raises OSError."""
    with suppress(FileNotFoundError), open_directory(path.parent) as directory:
        (directory / path.name).unlink()


def remove_tree(path: Path) -> None:
    """Remove a directory with all that is in it, as far as can be, as ``remove_file``."""
    with suppress(OSError), open_directory(path.parent) as directory:
        shutil.rmtree(directory / path.name, ignore_errors=True)


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
    with open_directory(path.parent) as directory:
        try:
            return os.fdopen(_created(directory / path.name, 0o666), "wb")
        except FileExistsError:
            existing = os.open(directory / path.name, _PATH | os.O_NOFOLLOW)
        try:
            status = os.fstat(existing)
            _require_overwritten(path, status)
            if stat.S_ISLNK(status.st_mode):
                _require_followed(path, status, directory.stat())
                (directory / path.name).stat()  # Raises OSError for a loop, and where nothing is.
                if status.st_dev != Path("/proc").stat().st_dev:
                    return open_named(path.parent / os.readlink("", dir_fd=existing))
                descriptor = os.open(directory / path.name, _OVERWRITE)
            else:
                descriptor = os.open(f"/proc/self/fd/{existing}", _OVERWRITE)
        except OSError as error:
            error.filename = str(path)
            raise
        finally:
            os.close(existing)
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "wb")


def _require_overwritten(path: Path, status: os.stat_result) -> None:
    if os.geteuid() != 0:
        return
    trusted = _trusted(os.environ)
    if status.st_uid not in (trusted.links if stat.S_ISLNK(status.st_mode) else trusted.directories):
        raise RequestError(
            f"{path} belongs to {user_name(status.st_uid)}; it is not overwritten",
            hint="choose another name, or remove the file",
        )
    if status.st_uid != 0 and stat.S_ISFIFO(status.st_mode):
        raise RequestError(f"{path} is a FIFO of {user_name(status.st_uid)}", hint="name a file")


def create_file(path: Path, mode: int = 0o600) -> BufferedWriter:
    """Make a new file and open it for writing, as ``open_named``. Raises FileExistsError if anything is there."""
    with open_directory(path.parent) as directory:
        return os.fdopen(_created(directory / path.name, mode), "wb")


def _created(file: Path, mode: int) -> int:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    if ids := _caller_who_owns(file.parent.stat()):
        _give(descriptor, ids)
    return descriptor


def user_name(uid: int) -> str:
    """Return the name of a user, or the number where there is none."""
    try:
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"the user {uid}"


# What files hold, by their SHA-256; and files that are kept, which may have become anything since: a caller of sudo
# owns the directories of some.


def file_sha256(file: Path) -> str:
    """Return the SHA-256 of the content, hexadecimal. Raises OSError, also for what is no regular file."""
    with open_found(file) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def read_kept(file: Path) -> bytes:
    """Return the content of a regular file. Raises OSError."""
    with open_found(file) as opened:
        return opened.read()


def sealed(text: str) -> str:
    """Return ``text`` of one line below its own checksum, for ``unsealed``."""
    return f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}\n"


def read_sealed(file: Path) -> dict[str, Any]:
    """Return the JSON object of a sealed file, without anything where it is missing, damaged or another value."""
    try:
        known = json.loads(unsealed(read_kept(file)))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


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

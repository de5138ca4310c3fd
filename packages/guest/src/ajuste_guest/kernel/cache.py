"""The kernels on this disk: one directory each under ``Home.kernels``, complete or not there at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from debian.debian_support import Version
from pydantic import TypeAdapter, ValidationError

from ajuste.machine.files import file_sha256, locked, read_kept
from ajuste.machine.home import Home
from ajuste.model.base import BaseModel
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage
from ajuste.model.wording import Say

EntryT = TypeVar("EntryT")

RECORD = "kernel.json"

NAME: Final = "files.json"
CHECKSUMS: Final = "checksums.json"
_SIZES: TypeAdapter[dict[str, int]] = TypeAdapter(dict[str, int])
_DIGESTS: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])
HINT = "free some space, or set AJUSTE_HOME to a directory on another disk"
_UNUSABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG)


class CachedKernel(BaseModel):
    """An entry of the cache. ``image`` has absolute paths and the spec that names exactly this kernel."""

    directory: Path
    image: KernelImage

    @property
    def package_version(self) -> str:
        """Return the version of its packages, e.g. ``6.12.94-1``."""
        return self.image.package.split(" ")[1]

    @property
    def size_bytes(self) -> int:
        return sum(read_inventory(self.directory).values())

    def damage(self, *, thoroughly: bool = False) -> str | None:
        """Say what is wrong with the files on disk, or None.

        All are looked at; the modules are read when they are loaded (see ``executor.guest.module``) or ``thoroughly``,
        all others now.
        """
        if thoroughly:
            return find_any_damage(self.directory)
        files = (self.image.vmlinuz, self.image.config)
        names = (str(file.relative_to(self.directory)) for file in files if file is not None)
        return find_damage(self.directory, (RECORD, *names))


def kernel_directory(home: Home, release: str, package_version: str) -> Path:
    """Return where a kernel is kept. A release alone would not do: packages are rebuilt under the same one."""
    return home.kernels / f"{release}_{package_version.replace(':', '%3a')}"


def cached_entries(home: Home) -> list[CachedKernel]:
    """Return what the cache has, newest first. Directories without a readable record are left out."""
    if not home.kernels.is_dir():
        return []
    entries = [entry for d in home.kernels.iterdir() if not d.name.startswith(".") and (entry := read_entry(d))]
    return sorted(entries, key=lambda e: (Version(e.package_version), e.image.release), reverse=True)


def read_entry(directory: Path) -> CachedKernel | None:
    """Return the entry in ``directory``, or None where there is no whole one."""
    try:
        record = KernelImage.model_validate_json(read_kept(directory / RECORD))
        Version(record.package.split(" ")[1])
    except (OSError, ValidationError, ValueError, IndexError):
        return None
    if not (directory / record.vmlinuz).is_file():
        return None
    # Paths in the record are relative to its directory, so that a cache can be moved.
    paths = {name: directory / path for name in ("vmlinuz", "modules", "config") if (path := getattr(record, name))}
    return CachedKernel(directory=directory, image=record.model_copy(update=paths))


def write_record(directory: Path, image: KernelImage) -> None:
    """Describe the kernel in ``directory``; ``image`` has paths relative to it. The inventory comes last: an entry
    without one does not count.
    """
    (directory / RECORD).write_text(image.model_dump_json(indent=2) + "\n", encoding="utf-8")
    write_inventory(directory)


# What files a cache entry has and what they hold, so that damage is noticed wherever they are read.


def write_inventory(directory: Path) -> None:
    """Record the size and the SHA-256 of every file below ``directory``; of a link, those of its own text."""
    files = {
        str(file.relative_to(directory)): file
        for file in sorted(directory.rglob("*"))
        if file.is_symlink() or file.is_file()
    }
    sizes = {name: file.lstat().st_size for name, file in files.items()}
    digests = {name: _digest(file) for name, file in files.items()}
    (directory / NAME).write_text(json.dumps(sizes, indent=0), encoding="utf-8")
    (directory / CHECKSUMS).write_text(json.dumps(digests, indent=0), encoding="utf-8")


def read_inventory(directory: Path) -> dict[str, int]:
    """Return the recorded size in bytes of every file, by its path within ``directory``; empty without a record."""
    try:
        return _SIZES.validate_json(read_kept(directory / NAME))
    except (OSError, ValidationError):
        return {}


def read_checksums(directory: Path) -> dict[str, str]:
    """Return the recorded SHA-256 of every file, by its path within ``directory``. Empty where there is no record."""
    try:
        return _DIGESTS.validate_json(read_kept(directory / CHECKSUMS))
    except (OSError, ValidationError):
        return {}


def find_damage(directory: Path, read: Iterable[str] = ()) -> str | None:
    """Say what differs from the inventory, or None; the files named ``read`` are read, as they are about to be used."""
    sizes, digests = read_inventory(directory), read_checksums(directory)
    for name, record in ((NAME, sizes), (CHECKSUMS, digests)):
        if not record:
            return f"{name} is missing or unreadable"
    for name, size_bytes in sizes.items():
        try:
            status = (directory / name).lstat()
        except OSError:
            return f"{name} is missing"
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            return f"{name} is not a file"
        if status.st_size != size_bytes:
            return f"{name} has {status.st_size} bytes instead of {size_bytes}"
    return next((damage for name in read if (damage := differs(directory, name, digests))), None)


def find_any_damage(directory: Path) -> str | None:
    """Say what differs from the inventory, or None; every file is read."""
    return find_damage(directory, read_checksums(directory))


def differs(directory: Path, name: str, digests: Mapping[str, str]) -> str | None:
    """Return what is wrong with one file by its checksum, in words, or None."""
    if name not in digests:
        return f"{CHECKSUMS} lacks {name}"
    try:
        digest = _digest(directory / name)
    except OSError as error:
        return f"{name} cannot be read: {error.strerror}"
    return None if digest == digests[name] else f"{name} changed (its SHA-256 differs)"


def put_in_place(entry: Path, place: Path, aside: Path) -> None:
    """Let ``entry`` be what is at ``place``; what was there, whatever it is, goes to ``aside``."""
    if os.path.lexists(place):
        place.rename(aside)
    entry.rename(place)


def _digest(file: Path) -> str:
    if file.is_symlink():
        return hashlib.sha256(os.fsencode(file.readlink())).hexdigest()
    return file_sha256(file)


# Disk space: asked for before anything is fetched.


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.0f} MB"


def require_space(directory: Path, needed_bytes: int, purpose: str) -> None:
    """Raise RequestError unless ``directory`` (or what will be above it) has ``needed_bytes`` free."""
    existing = next(p for p in (directory, *directory.parents) if p.exists())
    status = os.statvfs(existing)
    free = status.f_bavail * status.f_frsize
    if free < needed_bytes:
        raise RequestError(
            f"not enough disk space for {purpose}: {directory} has {_mb(free)} free; expected at least "
            f"{_mb(needed_bytes)}",
            hint=HINT,
        )


def out_of_space(directory: Path, purpose: str) -> RequestError:
    """Return the error for a disk that filled up meanwhile."""
    return RequestError(f"no disk space left for {purpose} in {directory}", hint=HINT)


def cached_entry(
    root: Path, what: str, doing: str, say: Say, *, read: Callable[[Say], EntryT | None], make: Callable[[], EntryT]
) -> EntryT:
    """Return an entry below ``root``: what ``read`` finds whole there, and holds, or else what ``make`` puts there.

    One process at a time makes some: ``doing`` is what others wait for. ``read`` says what is wrong with an entry.
    Raises RequestError if the directory cannot be used.
    """
    with keeping_in(root, what):
        if (entry := read(say)) is not None:
            return entry
        with locked(root / ".lock", waiting=lambda: say(f"waiting for another ajuste that is {doing}")):
            # The other process may just have made it.
            return make() if (entry := read(lambda _: None)) is None else entry


@contextmanager
def keeping_in(directory: Path, what: str) -> Iterator[None]:
    """Turn the errors of a directory that cannot be used into RequestError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise out_of_space(directory, what) from error
        # A directory above that cannot be made (in /proc, say) is reported as missing.
        unmade = error.errno == errno.ENOENT and directory.is_relative_to(error.filename or "/nowhere")
        if error.errno in _UNUSABLE or unmade:
            raise RequestError(
                f"cannot store {what} in {directory}: {error.strerror} ({error.filename})",
                hint="set AJUSTE_HOME to a directory you can write to",
            ) from error
        raise

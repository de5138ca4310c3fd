"""The files of a boot: written whole or not at all, on file systems that are there before anything is booted."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ajuste.machine.files import sync_to_disk
from ajuste.model.error import RequestError


def write_durably(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write ``path`` through a file beside it that takes its place, both on the disk. Raises OSError."""
    beside = path.with_name(f".{path.name}.ajuste")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    sync_to_disk(path.parent)


def remove_durably(path: Path) -> None:
    """Remove ``path``, if it is there. Raises OSError."""
    with suppress(FileNotFoundError):
        path.unlink()
        sync_to_disk(path.parent)


def content_of(path: Path) -> bytes | None:
    """The content; ``None`` where there is no such file. Raises OSError for anything else."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


_IN_MEMORY: Final = ("tmpfs", "ramfs", "overlay", "squashfs", "9p", "virtiofs")
_READ_BY_GRUB_ONLY: Final = ("btrfs", "zfs", "zfs_member", "bcachefs")
"""File systems in whose files GRUB cannot write: it could not take its one boot back."""

LEAST_FREE: Final = 1 << 20
"""Bytes that /boot must have free."""


class MountPoint(NamedTuple):
    """A line of /proc/mounts (proc_pid_mounts(5))."""

    source: str
    place: str
    kind: str
    options: tuple[str, ...]


def mount_of(path: Path, root: Path = Path("/")) -> MountPoint | None:
    """The file system that ``path`` is on, as the machine below ``root`` sees it."""
    try:
        lines = (root / "proc/mounts").read_text().splitlines()
    except OSError:
        return None
    inside = "/" + str(path.resolve().relative_to(root.resolve())) if path.is_relative_to(root) else str(path)
    found: MountPoint | None = None
    for words in map(str.split, lines):
        if len(words) < 4:
            continue
        place = words[1].encode().decode("unicode_escape")
        if (inside == place or inside.startswith(f"{place.rstrip('/')}/")) and (
            found is None or len(place) >= len(found.place)
        ):
            found = MountPoint(words[0], place, words[2], tuple(words[3].split(",")))
    return found


def why_not_written_by_grub(directory: Path, root: Path = Path("/")) -> str:
    """Why GRUB could not write to a file of ``directory``; empty if it can. Source: GRUB manual 2.06, 15.2 "The GRUB
    environment block": no diskfilter (LVM, RAID), no ZFS or btrfs.
    """
    mount = mount_of(directory, root)
    if mount is None:
        return ""
    if mount.kind in _READ_BY_GRUB_ONLY:
        return f"it cannot write to the file system of {mount.place} ({mount.kind})"
    if mount.source.startswith(("/dev/mapper/", "/dev/dm-", "/dev/md")):
        return f"it cannot write to {mount.source}"
    return ""


def require_lasting(directory: Path, what: str, root: Path = Path("/")) -> None:
    """Whether what is written to ``directory`` is there after a reboot. Raises RequestError."""
    there = next(one for one in (directory, *directory.parents) if one.exists())
    mount = mount_of(there, root)
    if mount is not None and mount.kind in _IN_MEMORY:
        raise RequestError(
            f"{what} is in {directory}, on {mount.kind}, which a reboot may lose",
            hint="set AJUSTE_HOME to a directory on a disk",
        )
    _require_writable(there, what, mount)


def require_room(directory: Path, what: str, root: Path = Path("/")) -> None:
    """Whether a file can be added to ``directory``. Raises RequestError."""
    _require_writable(directory, what, mount_of(directory, root))
    free = os.statvfs(directory)
    if free.f_bavail * free.f_frsize < LEAST_FREE or (free.f_files and not free.f_favail):
        raise RequestError(
            f"{directory} is full: {free.f_bavail * free.f_frsize >> 10} KiB are free; expected at least 1 MiB",
            hint="remove old kernels, for example with: apt-get autoremove --purge",
        )


def _require_writable(directory: Path, what: str, mount: MountPoint | None) -> None:
    read_only = os.statvfs(directory).f_flag & os.ST_RDONLY
    if read_only or (mount is not None and "ro" in mount.options):
        raise RequestError(
            f"{what}: {directory} is on a read-only file system",
            hint=f"mount it writable: mount -o remount,rw {directory}",
        )

"""Archives in the ``newc`` format, the same to the byte for the same content.

Source: Documentation/driver-api/early-userspace/buffer-format.rst of the Linux kernel.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from ajuste.model.error import RequestError

_TRAILER = "TRAILER!!!"
_LARGEST_FILE = 0xFFFF_FFFF


@dataclass(frozen=True)
class Directory:
    """A directory of the archive, root's."""

    mode: int = 0o755


@dataclass(frozen=True)
class Link:
    """A symbolic link to ``target``."""

    target: str


@dataclass(frozen=True)
class Regular:
    """A file: its content, or the file of this machine to copy it from."""

    content: bytes | Path
    mode: int = 0o644


@dataclass(frozen=True)
class CharacterDevice:
    """A character device, such as the console."""

    major: int
    minor: int
    mode: int = 0o600


Entry = Directory | Link | Regular | CharacterDevice


def write_archive(entries: Iterable[tuple[str, Entry]], out: BinaryIO) -> None:
    """Write ``entries`` (path without leading slash, entry) to ``out``, sorted, all of root's and of time 0.

    Parents come before their children because the order is that of the path's components. Raises RequestError for a
    file that changes its size while it is copied, or is 4 GiB or more.
    """
    ordered = sorted(entries, key=lambda item: PurePosixPath(item[0]).parts)
    for inode, (path, entry) in enumerate(ordered, start=1):
        _write_entry(out, inode, path, entry)
    _header(out, 0, _TRAILER, mode=0, size=0)
    # Linux finds the end without padding; other readers expect whole blocks of 512 bytes.
    out.write(b"\0" * (-out.tell() % 512))


def _write_entry(out: BinaryIO, inode: int, path: str, entry: Entry) -> None:
    match entry:
        case Directory(mode):
            _header(out, inode, path, mode=stat.S_IFDIR | mode, size=0, links=2)
        case CharacterDevice(major, minor, mode):
            _header(out, inode, path, mode=stat.S_IFCHR | mode, size=0, device=(major, minor))
        case Link(target):
            _write_bytes(out, inode, path, stat.S_IFLNK | 0o777, target.encode())
        case Regular(bytes() as content, mode):
            _write_bytes(out, inode, path, stat.S_IFREG | mode, content)
        case Regular(Path() as source, mode):
            _write_file(out, inode, path, stat.S_IFREG | mode, source)


def _write_bytes(out: BinaryIO, inode: int, path: str, mode: int, content: bytes) -> None:
    _header(out, inode, path, mode=mode, size=len(content))
    out.write(content)
    _pad(out)


def _write_file(out: BinaryIO, inode: int, path: str, mode: int, source: Path) -> None:
    with source.open("rb") as content:
        size = os.fstat(content.fileno()).st_size
        if size > _LARGEST_FILE:
            raise RequestError(f"{source} has {size} bytes; a guest supports only files smaller than 4 GiB")
        _header(out, inode, path, mode=mode, size=size)
        start = out.tell()
        shutil.copyfileobj(content, out)
    if out.tell() - start != size:
        raise RequestError(
            f"{source} changed while it was copied into the guest", hint="try again when no program writes to it"
        )
    _pad(out)


def _header(
    out: BinaryIO, inode: int, path: str, *, mode: int, size: int, links: int = 1, device: tuple[int, int] = (0, 0)
) -> None:
    name = path.encode() + b"\0"
    owner = group = modified = checksum = 0
    fields = (inode, mode, owner, group, links, modified, size, 0, 0, *device, len(name), checksum)
    out.write(b"070701" + b"".join(b"%08X" % field for field in fields) + name)
    _pad(out)


def _pad(out: BinaryIO) -> None:
    out.write(b"\0" * (-out.tell() % 4))


_HEAD: Final = 110
_KINDS: Final = 0o170000


def read_archive(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """The path and the content of each regular file. Raises ValueError for what is no archive."""
    at = 0
    while True:
        fields = archive[at : at + _HEAD]
        if len(fields) < _HEAD or not fields.startswith(b"070701"):
            raise ValueError("it is not an archive in the format newc")
        mode, size, length = (int(fields[place : place + 8], 16) for place in (14, 54, 94))
        path = archive[at + _HEAD : at + _HEAD + length - 1].decode(errors="replace")
        start = at + _HEAD + length + 3 & ~3
        if path == _TRAILER:
            return
        if mode & _KINDS == stat.S_IFREG:
            yield path, archive[start : start + size]
        at = start + size + 3 & ~3

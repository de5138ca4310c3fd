"""Contents of package files. Nothing of them is run, and nothing is written outside of the directory that is given.

Source: deb(5).
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import shutil
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

from debian.arfile import ArError, ArFile

from ajuste.model.error import RunError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_DATA: Final = "data.tar"
_CONTROL: Final = "control.tar"
_LARGEST_SCRIPT: Final = 1 << 20
# No package of Debian unpacks to more.
_MOST_BYTES: Final = 16 << 30
_DAMAGED: Final = (ArError, tarfile.TarError, lzma.LZMAError, zlib.error, zstd.ZstdError, EOFError, ValueError)
_OF_THE_DISK: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM)


def unpack(packages: Iterable[Path], into: Path) -> None:
    """Extract package files with their modes (without setuid and the like) and times. Raises RunError for a file that
    is no package, or with names that lead out of the directory.
    """
    tree = _Tree(into)
    into.mkdir(exist_ok=True)
    for package in packages:
        with _reading(package, _DATA) as tar:
            tree.extract(tar)
    tree.finish()


@dataclass(frozen=True)
class PackedFile:
    """An entry of a package at the relative ``path``: a directory, a link to ``target``, or a file with ``content``.
    The ``target`` of a hard link (``same``) is a path within the package.
    """

    path: PurePosixPath
    mode: int
    directory: bool = False
    same: bool = False
    target: str = ""
    content: bytes = b""


def read_package(package: Path, wanted: Callable[[PurePosixPath], bool]) -> Iterator[PackedFile]:
    """Return what a package has at the ``wanted`` paths, in its order, without setuid and the like. Raises RunError as
    ``unpack``.
    """
    size_bytes = 0
    with _reading(package, _DATA) as tar:
        for member in tar:
            path = _inside(member.name)
            size_bytes += member.size
            if size_bytes > _MOST_BYTES:
                raise ValueError(f"it has more than {_MOST_BYTES} bytes")
            if not (member.isdir() or member.issym() or member.islnk() or member.isfile()):
                raise ValueError(f"{member.name!r} is no file, directory or link")
            if not wanted(path):
                continue
            if member.isdir():
                yield PackedFile(path, member.mode & 0o1777, directory=True)
            elif member.issym():
                yield PackedFile(path, 0o777, target=member.linkname)
            elif member.islnk():
                yield PackedFile(path, 0, same=True, target=str(_inside(member.linkname)))
            else:
                content = tar.extractfile(member)
                assert content is not None
                yield PackedFile(path, member.mode & 0o777, content=content.read())


def postinst(package: Path) -> str:
    """Return the text of a package's ``postinst``, empty if it has none. Raises RunError as ``unpack``."""
    with _reading(package, _CONTROL) as tar:
        for member in tar:
            if _inside(member.name) == PurePosixPath("postinst") and member.isfile() and member.size <= _LARGEST_SCRIPT:
                content = tar.extractfile(member)
                assert content is not None
                return content.read().decode("utf-8", "replace")
    return ""


@contextmanager
def _reading(package: Path, part: str) -> Iterator[tarfile.TarFile]:
    # Whatever is wrong with a part is a RunError.
    try:
        with ExitStack() as opened, tarfile.open(fileobj=_open_part(package, part, opened), mode="r|") as tar:
            yield tar
    except (*_DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
            raise
        raise RunError(f"could not extract {package.name}: {str(error) or type(error).__name__}") from None


class _Forwards(io.BufferedReader):
    # A file in which members of negative size, which lead back to the same one, are an error.
    def seek(self, target: int, whence: int = 0, /) -> int:
        if whence == io.SEEK_CUR and target < 0:
            raise ValueError("it has a part of negative size")
        return super().seek(target, whence)


def _open_part(package: Path, part: str, opened: ExitStack) -> IO[bytes]:
    archive = ArFile(fileobj=opened.enter_context(_Forwards(io.FileIO(package))))
    if sum(60 + item.size for item in archive.getmembers()) > package.stat().st_size:
        raise ValueError("it is cut off")
    member = next((item for item in archive.getmembers() if item.name.startswith(part)), None)
    if member is None:
        raise ValueError(f"it has no {part}")
    stream = cast("IO[bytes]", member)
    match member.name.removeprefix(part):
        case ".xz" | ".lzma":
            return opened.enter_context(lzma.open(stream))
        case ".gz":
            return opened.enter_context(cast("IO[bytes]", gzip.open(stream)))
        case ".bz2":
            return opened.enter_context(bz2.open(stream))
        case ".zst":
            return opened.enter_context(cast("IO[bytes]", zstd.open(stream)))
        case "":
            return stream
    raise ValueError(f"{member.name} has an unknown compression")


@dataclass
class _Tree:
    # What is extracted into a directory. Links come last: while files are written there is none to follow.
    into: Path
    links: list[tuple[Path, str]] = field(default_factory=list)
    directories: list[tuple[Path, tarfile.TarInfo]] = field(default_factory=list)
    size_bytes: int = 0

    def extract(self, tar: tarfile.TarFile) -> None:
        for member in tar:
            place = self.into / _inside(member.name)
            place.parent.mkdir(parents=True, exist_ok=True)
            self.size_bytes += member.size
            if self.size_bytes > _MOST_BYTES:
                raise ValueError(f"it has more than {_MOST_BYTES} bytes")
            if member.isdir():
                place.mkdir(exist_ok=True)
                self.directories.append((place, member))
            elif member.issym():
                self.links.append((place, member.linkname))
            elif member.islnk():
                place.unlink(missing_ok=True)
                place.hardlink_to(self.into / _inside(member.linkname))
            elif member.isfile():
                place.unlink(missing_ok=True)
                content = tar.extractfile(member)
                assert content is not None
                with place.open("xb") as file:
                    shutil.copyfileobj(content, file)
                _describe(place, member)
            else:
                raise ValueError(f"{member.name!r} is no file, directory or link")

    def finish(self) -> None:
        # Directories get their times last: making links in them changes these.
        for place, target in self.links:
            if place.is_dir() and not place.is_symlink():
                continue
            place.unlink(missing_ok=True)
            place.symlink_to(target)
        for place, member in reversed(self.directories):
            _describe(place, member)


def _describe(place: Path, member: tarfile.TarInfo) -> None:
    # What is kept must stay removable.
    place.chmod(member.mode & 0o755 | (0o700 if member.isdir() else 0o600))
    os.utime(place, (member.mtime, member.mtime))


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise ValueError(f"the name {name[:100]!r} leads out of the package")
    return path

"""A small disk that misbehaves when it is told to: full, read-only, or with I/O errors.

It is an ext4 file system in a sparse file of a tmpfs. ``full``: the file system has no room left. ``read-only``: it is
remounted. ``failing``: the tmpfs beneath has no room, so that the blocks of the file system that were never written
cannot be: fsync(2) says EIO. Needs root and a loop device.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

Kind = Literal["full", "read-only", "failing"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
ROOM_KIB: Final = 4096
BENEATH_KIB: Final = 6144
_CHUNK: Final = 4096


@dataclass(frozen=True)
class BadDisk:
    """``place`` is where it is mounted; ``beneath`` the tmpfs with its blocks."""

    place: Path
    beneath: Path

    def spoil(self, kind: Kind) -> None:
        """From now on it misbehaves so."""
        match kind:
            case "full":
                _fill(self.place / "filler")
            case "read-only":
                _run("mount", "-o", "remount,ro", self.place)
            case "failing":
                _fill(self.beneath / "filler")

    def mend(self) -> None:
        """It works again. What it lost is lost."""
        (self.beneath / "filler").unlink(missing_ok=True)
        _run("mount", "-o", "remount,rw", self.place)
        (self.place / "filler").unlink(missing_ok=True)


@contextmanager
def bad_disk(root: Path) -> Iterator[BadDisk]:
    """One in ``root / "disk"``, sound at first."""
    beneath, place = root / "beneath", root / "disk"
    beneath.mkdir()
    place.mkdir()
    _run("mount", "-t", "tmpfs", "-o", f"size={BENEATH_KIB}k,mode=0700", "ajuste-bad-disk", beneath)
    try:
        image = beneath / "image"
        with image.open("wb") as file:
            file.truncate(ROOM_KIB << 10)
        # An error is said, and the file system goes on.
        _run(
            "mkfs.ext4", "-q", "-O", "^has_journal", "-m", "0", "-N", "512", "-E", "nodiscard", "-e", "continue", image
        )
        _run("mount", "-o", "loop", image, place)
        try:
            place.chmod(0o700)
            yield BadDisk(place, beneath)
        finally:
            _run("umount", place)
    finally:
        _run("umount", beneath)


def _fill(path: Path) -> None:
    """Until there is no room, in ever smaller pieces."""
    with suppress(OSError), path.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(_CHUNK))


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True)

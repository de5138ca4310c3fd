"""A small disk that misbehaves when it is told to: full, read-only, or with I/O errors.

It is an ext4 file system in a sparse file of a tmpfs. ``full``: it has no room left. ``read-only``: after an error,
as ext4 does with ``errors=remount-ro``. ``failing``: the tmpfs beneath has no room, so that the blocks of files that
were never written cannot be: fsync(2) says EIO. Needs root and a loop device.
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
        """Make the disk misbehave so from now on."""
        match kind:
            case "full":
                _fill(self.place / "filler")
            case "read-only":
                # Remounting by hand is refused while a file is open for writing.
                (Path("/sys/fs/ext4") / self._device().name / "trigger_fs_error").write_text("1")
            case "failing":
                _fill(self.beneath / "filler")

    def mend(self) -> None:
        """Check and mount it anew, so that it works again. What did not get to it is lost. Nobody may have it open."""
        (self.beneath / "filler").unlink(missing_ok=True)
        _run("umount", self.place)
        # 1 and 2: errors were corrected (e2fsck(8)).
        _run("e2fsck", "-fy", self.image, allowed=(0, 1, 2))
        self.mount()
        (self.place / "filler").unlink(missing_ok=True)

    @property
    def image(self) -> Path:
        return self.beneath / "image"

    def mount(self) -> None:
        _run("mount", "-o", "loop", self.image, self.place)

    def _device(self) -> Path:
        return Path(_run("findmnt", "-no", "SOURCE", "--mountpoint", self.place).strip())


@contextmanager
def bad_disk(root: Path) -> Iterator[BadDisk]:
    """Yield a disk in ``root / "disk"``, sound at first."""
    beneath, place = root / "beneath", root / "disk"
    beneath.mkdir()
    place.mkdir()
    _run("mount", "-t", "tmpfs", "-o", f"size={BENEATH_KIB}k,mode=0700", "ajuste-bad-disk", beneath)
    try:
        disk = BadDisk(place, beneath)
        with disk.image.open("wb") as file:
            file.truncate(ROOM_KIB << 10)
        # Its own journal and tables have their blocks; those of files are had when they are written.
        extended = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
        options = ("-b", "1024", "-J", "size=1", "-m", "0", "-N", "1024", "-E", extended, "-e", "remount-ro")
        _run("mkfs.ext4", "-q", *options, disk.image)
        disk.mount()
        try:
            place.chmod(0o700)
            yield disk
        finally:
            _run("umount", place)
    finally:
        _run("umount", beneath)


def _fill(path: Path) -> None:
    """Until there is no room, in ever smaller pieces."""
    with suppress(OSError), path.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(_CHUNK))


def _run(*command: str | Path, allowed: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in allowed:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout

"""Files that survive a power cut: written whole or not at all, and on the disk before anything follows from them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


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
    sync_directory(path.parent)


def remove_durably(path: Path) -> None:
    """Remove ``path``, if it is there. Raises OSError."""
    with suppress(FileNotFoundError):
        path.unlink()
        sync_directory(path.parent)


def sync_file(path: Path) -> None:
    """What another program wrote to ``path`` is on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(directory: Path) -> None:
    """What was made or removed in ``directory`` is on the disk. Raises OSError."""
    sync_file(directory)


def content_of(path: Path) -> bytes | None:
    """The content; ``None`` where there is no such file. Raises OSError for anything else."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None

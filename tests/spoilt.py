"""Faults of files: flipped bits, files that were cut off, and other things where files were."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Spoil = Callable[[Path], None]


def flip(position: int) -> Spoil:
    """Flip one bit, so many bytes from the beginning (or from the end); size and time stay as they were."""

    def spoil(file: Path) -> None:
        content, before = bytearray(file.read_bytes()), file.stat()
        content[position % len(content)] ^= 1
        file.write_bytes(content)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    return spoil


def replaced_by(make: Spoil) -> Spoil:
    def spoil(file: Path) -> None:
        file.unlink()
        make(file)

    return spoil


SPOILT: dict[str, Any] = {
    "first bit": flip(0),
    "a bit in the middle": flip(2000),
    "last bit": flip(-1),
    "cut off": lambda file: os.truncate(file, file.stat().st_size - 1),
    "empty": lambda file: os.truncate(file, 0),
    "empty JSON": lambda file: file.write_text("{}") and None,
    "a directory": replaced_by(lambda file: file.mkdir()),
    "a link to nowhere": replaced_by(lambda file: file.symlink_to("nowhere")),
    "a link to itself": replaced_by(lambda file: file.symlink_to(file.name)),
    "a FIFO": replaced_by(lambda file: os.mkfifo(file)),
    "gone": Path.unlink,
}

"""Reading the kernel's files for live metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ajuste.run.live.reading import NothingShownError

_MOST_BYTES: Final = 4 << 20


def read_file(path: Path) -> str:
    """What ``path`` has now. Raises NothingShownError."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode(errors="replace")
    except OSError as error:
        raise NothingShownError(f"cannot read {path}: {error.strerror}") from None


def field_of(text: str, key: str) -> float | None:
    """The number after ``key`` in lines of names and numbers, such as /proc/vmstat, /proc/meminfo and cpu.stat. Bytes
    that are counted in kB are given in bytes.
    """
    for line in text.splitlines():
        words = line.replace(":", " ").split()
        if len(words) > 1 and words[0] == key:
            try:
                return float(words[1]) * (1024 if words[2:] == ["kB"] else 1)
            except ValueError:
                return None
    return None

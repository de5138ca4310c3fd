"""Programs of this machine, and the shared libraries that they load by themselves."""

from __future__ import annotations

import shutil
from pathlib import Path


def is_library(file: Path) -> bool:
    """Such as ``libc.so.6``: loaded, not started, and so not executable as a rule."""
    return ".so" in file.suffixes


def find_program(name: str) -> str | None:
    """The absolute path of a program on this machine, as ``shutil.which``; of a library that is named by its own."""
    file = Path(name)
    if file.is_absolute() and is_library(file):
        return name if file.is_file() else None
    return shutil.which(name)

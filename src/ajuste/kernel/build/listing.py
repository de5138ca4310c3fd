"""The files of a directory tree."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ajuste.kernel.build.origin import LINK, PLAIN, PROGRAM

_NOT_SOURCE = frozenset({".git", ".hg", ".svn"})


def list_files(directory: Path) -> Iterator[tuple[str, str, os.stat_result]]:
    """Path within ``directory``, kind and status of all files and symbolic links (which are not followed); not what
    version control keeps.
    """
    folders = [""]
    while folders:
        prefix = folders.pop()
        with os.scandir(directory / prefix) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and entry.name not in _NOT_SOURCE:
                    folders.append(f"{prefix}{entry.name}/")
                elif stat.S_ISLNK(status.st_mode):
                    yield prefix + entry.name, LINK, status
                elif stat.S_ISREG(status.st_mode) and entry.name not in _NOT_SOURCE:
                    yield prefix + entry.name, PROGRAM if status.st_mode & stat.S_IXUSR else PLAIN, status

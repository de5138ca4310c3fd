"""Files by their content: what was sent once is there for every later study."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final

from ajuste.checksum import sha256_of
from ajuste.home import Home
from ajuste.kernel.space import keeping_in, require_space
from ajuste.model.error import RunError
from ajuste.ownership import make_directory

LARGEST_BYTES: Final = 2 << 30
"""So much is kept at most."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_SPARE_BYTES = 64 << 20


class Depot:
    """A directory of a worker. A file is there whole or not at all."""

    def __init__(self, home: Home) -> None:
        self._root = home.cache / "cluster"

    def find(self, digest: str) -> Path | None:
        """The file with that SHA-256. One that was damaged is removed, as if it had never come."""
        path = self._path(digest)
        if not path.is_file():
            return None
        if sha256_of(path) != digest:
            path.unlink(missing_ok=True)
            return None
        path.touch()
        return path

    def put(self, digest: str, content: bytes) -> None:
        """Keep ``content``. Raises RunError if it is not what ``digest`` says, RequestError for a full disk."""
        path = self._path(digest)
        if hashlib.sha256(content).hexdigest() != digest:
            raise RunError("a file that was sent to a worker arrived damaged: its SHA-256 differs")
        with keeping_in(self._root, "files of the cluster"):
            make_directory(self._root)
            self._make_room(len(content))
            require_space(self._root, len(content) + _SPARE_BYTES, "a file of the cluster")
            temporary = path.with_name(f".{digest}.{os.getpid()}")
            temporary.write_bytes(content)
            temporary.replace(path)

    def _make_room(self, needed_bytes: int) -> None:
        """Remove what was not used for longest, where there is too much."""
        files = sorted(self._root.glob("[0-9a-f]*"), key=lambda file: file.stat().st_mtime)
        total_bytes = needed_bytes + sum(file.stat().st_size for file in files)
        for file in files:
            if total_bytes <= LARGEST_BYTES:
                return
            total_bytes -= file.stat().st_size
            file.unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise RunError(f"{digest[:80]!r} is no SHA-256")
        return self._root / digest

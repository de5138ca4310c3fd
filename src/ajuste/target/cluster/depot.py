"""Files by their content: what was sent once is there for every later study."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path

from ajuste.cache import CLUSTER, make_room
from ajuste.checksum import sha256_of
from ajuste.home import Home
from ajuste.kernel.space import keeping_in, require_space
from ajuste.model.error import RunError

_DIGEST = re.compile(r"[0-9a-f]{64}")
_SPARE_BYTES = 64 << 20


class Depot:
    """A directory of a worker. A file is there whole or not at all."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._root = home.cache / "cluster"

    def find(self, digest: str) -> Path | None:
        """The file with that SHA-256. One that was damaged is removed, as if it had never come."""
        path = self._path(digest)
        try:
            if sha256_of(path) == digest:
                path.touch()
                return path
        except FileNotFoundError:
            return None
        except OSError:
            pass
        self._remove(path)
        return None

    def put(self, digest: str, content: bytes) -> None:
        """Keep ``content``. Raises RunError if it is not what ``digest`` says, RequestError for a full disk."""
        path = self._path(digest)
        if hashlib.sha256(content).hexdigest() != digest:
            raise RunError("a file that was sent to a worker arrived damaged: its SHA-256 differs")
        with keeping_in(self._root, "files of the cluster"):
            self._root.mkdir(parents=True, exist_ok=True)
            require_space(self._root, len(content) + _SPARE_BYTES, "a file of the cluster")
            temporary = path.with_name(f".{digest}.{os.getpid()}")
            temporary.write_bytes(content)
            if path.is_dir():
                self._remove(path)
            temporary.replace(path)
        make_room(CLUSTER, self._home)

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError:
            shutil.rmtree(path, ignore_errors=True)

    def _path(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise RunError(f"{digest[:80]!r} is no SHA-256")
        return self._root / digest

"""Files by their content: what was sent once is there for every later study."""

from __future__ import annotations

import os
import re
import shutil
import threading
from pathlib import Path
from typing import Final

from ajuste.executor.cluster.answer import Piece
from ajuste.kernel.cache import keeping_in, require_space
from ajuste.machine.cache import CLUSTER, make_room
from ajuste.machine.files import make_directory, sha256_of
from ajuste.machine.home import Home
from ajuste.model.error import RunError
from ajuste.model.wording import visible_line

LARGEST_BYTES: Final = 2 << 30
"""Of one file."""

MOST_HALF_SENT: Final = 8
"""So many files may have come in part; the one that nothing was added to for longest goes first."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_SPARE_BYTES = 64 << 20


class BlobCache:
    """A directory of a worker. A file is there whole or not at all."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._root = home.cache / "cluster"
        self._lock = threading.Lock()

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

    def put(self, piece: Piece) -> None:
        """Keep a part of a file; the last one makes it whole. Raises RunError if that is not what its digest says or a
        part is missing, RequestError for a full disk.
        """
        path = self._path(piece.digest)
        if piece.size_bytes > LARGEST_BYTES or piece.offset + len(piece.content) > piece.size_bytes:
            raise RunError(
                f"a file of {piece.size_bytes} bytes was sent to a worker, which accepts at most {LARGEST_BYTES}"
            )
        temporary = path.with_name(f".{piece.digest}.{os.getpid()}")
        with self._lock, keeping_in(self._root, "files of the cluster"):
            if piece.offset == 0:
                self._begin(temporary, piece.size_bytes)
            if not temporary.exists() or temporary.stat().st_size != piece.offset:
                raise RunError("a file that was sent to a worker arrived in the wrong order")
            with temporary.open("ab") as file:
                file.write(piece.content)
            if piece.offset + len(piece.content) < piece.size_bytes:
                return
            if sha256_of(temporary) != piece.digest:
                temporary.unlink()
                raise RunError("a file that was sent to a worker arrived damaged: its SHA-256 differs")
            if path.is_dir():
                self._remove(path)
            temporary.replace(path)
        make_room(CLUSTER, self._home)

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError:
            shutil.rmtree(path, ignore_errors=True)

    def _begin(self, temporary: Path, size_bytes: int) -> None:
        make_directory(self._root)
        half_sent = [one for one in self._root.glob(f".*.{os.getpid()}") if one != temporary]
        if len(half_sent) >= MOST_HALF_SENT:
            min(half_sent, key=lambda file: file.stat().st_mtime).unlink(missing_ok=True)
        require_space(self._root, size_bytes + _SPARE_BYTES, "a file of the cluster")
        temporary.write_bytes(b"")

    def _path(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise RunError(f"{visible_line(digest[:80])!r} is not a SHA-256")
        return self._root / digest

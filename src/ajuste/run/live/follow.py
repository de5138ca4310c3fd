"""Following a log: the lines that came since it was last looked at, also when the file is rotated."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ajuste.model.error import RequestError
from ajuste.run.live.reading import NothingShownError

_MOST_BYTES: Final = 8 << 20
"""Of what came at once; the rest is left out."""


class FollowedLog:
    """``path`` from its present end on."""

    def __init__(self, path: Path) -> None:
        if not path.is_absolute():
            raise RequestError(f"{path} is not an absolute path", hint=f"give {path.absolute()}")
        self._path = path
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise RequestError(
                f"cannot read {path}: {error.strerror}", hint="check its name and who may read it"
            ) from None
        self._at = os.lseek(self._file, 0, os.SEEK_END)
        self._rest = b""

    def lines(self) -> list[str]:
        """Whole lines only; the rest is given once its end has come. Raises NothingShownError."""
        found = self._new()
        try:
            here = self._path.stat()
        except FileNotFoundError:
            return found
        except OSError as error:
            raise NothingShownError(f"cannot read {self._path}: {error.strerror}") from None
        if not os.path.samestat(here, os.fstat(self._file)):
            self._follow()
            found += self._new()
        return found

    def _follow(self) -> None:
        """Go on with the file that took the place of this one."""
        try:
            new = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return
        os.close(self._file)
        self._file, self._at, self._rest = new, 0, b""

    def _new(self) -> list[str]:
        size = os.fstat(self._file).st_size
        if size < self._at:  # It was cut.
            self._at, self._rest = 0, b""
        if size - self._at > _MOST_BYTES:
            self._at, self._rest = size - _MOST_BYTES, b""
        chunk = os.pread(self._file, _MOST_BYTES, self._at)
        self._at += len(chunk)
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        return [line.decode(errors="replace") for line in whole]

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

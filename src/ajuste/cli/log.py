"""The log of one command: what it does, as JSON lines in a file that only its user can read.

Modules log to ``logging`` under their names. Without ``--log`` nothing is written.
"""

from __future__ import annotations

import atexit
import logging
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TextIO

from ajuste.machine.files import open_directory, user_name
from ajuste.machine.home import ajuste_version
from ajuste.model.error import RequestError
from ajuste.model.plugins import packages
from ajuste.model.wording import visible_line

OPTION: Final = "--log"

_LOG: Final = logging.getLogger(__name__)
_NAMES: Final = {"levelname": "level", "name": "module", "message": "event", "exc_info": "traceback"}
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class _LogFile(logging.StreamHandler[TextIO]):
    # A full disk must not end a measurement: the log goes on, and the end of the command says that lines are missing.
    def __init__(self, path: Path) -> None:
        super().__init__(os.fdopen(_opened(path), "w", encoding="utf-8"))
        self._path = path
        self._problem = ""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - as logging calls it
        self._problem = self._problem or str(sys.exc_info()[1])

    def say_problem(self) -> None:
        if self._problem:
            print(f"ajuste: the log {visible_line(str(self._path))} is incomplete: {self._problem}", file=sys.stderr)


def begin_log(path: Path) -> None:
    """Append what this process does from now on to the file ``path``. Raises RequestError if it cannot be written."""
    from pythonjsonlogger.json import JsonFormatter

    file = _LogFile(path)
    columns = [name for name in _NAMES if name != "exc_info"]
    file.setFormatter(JsonFormatter(columns, rename_fields=_NAMES, timestamp="time"))
    atexit.register(file.say_problem)
    for package in {"ajuste", *packages()}:
        listened = logging.getLogger(package)
        listened.addHandler(file)
        listened.setLevel(logging.INFO)
    _LOG.info("command begun", extra={"version": ajuste_version(), "arguments": sys.argv[1:]})


def without_log(words: Sequence[str]) -> Sequence[str]:
    """Return the words of a command line without ``--log`` before the command."""
    while words and words[0].partition("=")[0] == OPTION:
        words = words[1 if "=" in words[0] else 2 :]
    return words


def _opened(path: Path) -> int:
    # Root may log into a directory that others can write to: a link, a FIFO or another user's file is refused.
    try:
        with open_directory(path.parent) as directory:
            descriptor = os.open(directory / path.name, _FLAGS, 0o600)
    except OSError as error:
        what = "it is a directory" if path.is_dir() else str(error.strerror)
        raise _refused(path, "it is a symbolic link" if path.is_symlink() else what) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise _refused(path, "it is not a regular file")
    if status.st_uid != os.geteuid():
        raise _refused(path, f"it belongs to {user_name(status.st_uid)}")
    os.fchmod(descriptor, 0o600)
    return descriptor


def _refused(path: Path, why: str) -> RequestError:
    return RequestError(
        f"{OPTION} {visible_line(str(path))}: the log cannot be written: {why}", hint="name a file of your own"
    )

"""The session of a process that runs machines: its directory, and the guardian that ends them if it dies."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final, Self

from ajuste.machine.files import make_directory
from ajuste.machine.home import AGENT, Home, native_program
from ajuste.machine.session import MARKER, PREFIX, boot_id, machine_id, stale, started_ticks
from ajuste.model.error import RequestError

_GUARDIAN_GRACE_SECONDS: Final = 10


class MachineSession:
    """A directory for this process. ``directory`` exists between entering and leaving."""

    def __init__(self, home: Home) -> None:
        self._sessions = home.sessions
        self._directory: Path | None = None
        self._guardian: subprocess.Popen[bytes] | None = None

    @property
    def directory(self) -> Path:
        assert self._directory is not None, "the session was not entered"
        return self._directory

    def __enter__(self) -> Self:
        agent = native_program(AGENT)
        try:
            make_directory(self._sessions)
            remove_stale(self._sessions)
            # Resolved, because the guardian looks for it in command lines.
            self._directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self._sessions.resolve()))
            (self._directory / MARKER).write_text(json.dumps(_owner()))
        except OSError as error:
            self._remove()
            raise RequestError(
                f"cannot create a directory in {self._sessions}: {error.strerror}",
                hint="set AJUSTE_HOME to a directory you can write to",
            ) from error
        # A session of its own, so that Ctrl-C at the terminal does not reach it.
        self._guardian = subprocess.Popen(
            [agent, "sweep", self._directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        return self

    def __exit__(self, *_: object) -> None:
        # The guardian ends the machines that still run, for a caller that was interrupted while threads wait for them.
        if self._guardian is not None:
            assert self._guardian.stdin is not None
            with contextlib.suppress(OSError):
                self._guardian.stdin.close()
            try:
                self._guardian.wait(_GUARDIAN_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self._guardian.kill()
                self._guardian.wait()
        self._remove()

    def _remove(self) -> None:
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)


def remove_stale(sessions: Path) -> None:
    """Remove the session directories whose owner is gone."""
    for directory in stale(sessions):
        shutil.rmtree(directory, ignore_errors=True)


def _owner() -> dict[str, object]:
    return {
        "pid": os.getpid(),
        "started_ticks": started_ticks(os.getpid()),
        "boot": boot_id(),
        "machine": machine_id(),
    }

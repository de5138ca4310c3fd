"""The state of a live experiment, and the request to stop it: small files for other processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError

from ajuste.machine.files import make_directory, remove_file, replace_file
from ajuste.machine.home import Home
from ajuste.machine.session import boot_id, started_ticks
from ajuste.model.base import BaseModel
from ajuste.model.caller import open_found

_NAME: Final = "now.json"
_STOP: Final = "stop"
_MOST_BYTES: Final = 1 << 20
ON_PROBATION: Final = "on probation"
"""The state before the winner is adopted."""


class LiveState(BaseModel):
    """The current state. ``configuration`` is empty while nothing is changed, as in waiting. ``said`` is the answer so
    far, ``predicted`` the expected length, both in sentences.
    """

    run: str
    study: str
    pid: int
    started_ticks: int = Field(gt=0)
    boot: str
    slices: int = 0
    block: int = 0
    configuration: str = ""
    doing: str = ""
    said: str = ""
    predicted_slices: int | None = None
    predicted: str = ""

    @property
    def is_alive(self) -> bool:
        """Return whether its process exists."""
        if self.boot != boot_id():
            return False
        return started_ticks(self.pid) == self.started_ticks


def own_state(run: str, study: str) -> LiveState:
    """Return the state of this process, which has done nothing yet."""
    pid = os.getpid()
    return LiveState(run=run, study=study, pid=pid, started_ticks=started_ticks(pid), boot=boot_id())


def directory(home: Home) -> Path:
    """Return the directory of the current state of live experiments."""
    return home.followed / "live"


def keep_state(home: Home, state: LiveState) -> None:
    """Store the state for other processes."""
    place = directory(home)
    make_directory(place)
    replace_file(place / _NAME, state.model_dump_json().encode())


def kept_state(home: Home) -> LiveState | None:
    """Return the last stored state, also of an ended experiment; None if there is none."""
    try:
        with open_found(directory(home) / _NAME) as file:
            return LiveState.model_validate_json(file.read(_MOST_BYTES))
    except (OSError, ValidationError):
        return None


def ask_to_stop(home: Home, run: str) -> None:
    """Ask the process of ``run`` to end it."""
    make_directory(directory(home))
    replace_file(directory(home) / _STOP, run.encode())


def is_asked_to_stop(home: Home, run: str) -> bool:
    """Return whether the experiment was asked to stop."""
    try:
        with open_found(directory(home) / _STOP) as file:
            return file.read(_MOST_BYTES) == run.encode()
    except OSError:
        return False


def forget_stop(home: Home) -> None:
    """Remove a request to stop, also one of an earlier run."""
    remove_file(directory(home) / _STOP)

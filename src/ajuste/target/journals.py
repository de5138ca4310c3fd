"""Journals that an experiment on this machine left behind, and putting back what they say."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from ajuste.model.error import RequestError
from ajuste.model.plan import Location
from ajuste.native import AGENT, native_program
from ajuste.this_boot import boot_id

EXTENSION: Final = ".journal"
State = Literal["left", "void"]

_HEADER_BYTES = 4096


@dataclass(frozen=True)
class Leftovers:
    """``left``: of this boot, so that values may still be changed. ``void``: of an earlier boot, which has taken all
    changes with it, or so short that nothing was changed yet.
    """

    left: tuple[Path, ...] = ()
    void: tuple[Path, ...] = ()


def leftovers(directory: Path) -> Leftovers:
    """The journals in ``directory``. While somebody holds the machine's lock they are in use."""
    found: dict[State, list[Path]] = {"left": [], "void": []}
    try:
        names = sorted(path for path in directory.iterdir() if path.name.endswith(EXTENSION))
    except OSError:
        names = []
    for path in names:
        found[_state(path)].append(path)
    return Leftovers(tuple(found["left"]), tuple(found["void"]))


def _state(path: Path) -> State:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return "left"
    with os.fdopen(descriptor, "rb") as file:
        first, newline, _ = file.read(_HEADER_BYTES).partition(b"\n")
    if not newline:
        return "void" if len(first) < _HEADER_BYTES else "left"
    try:
        header = json.loads(first)
    except (ValueError, RecursionError):
        return "left"
    return "void" if isinstance(header, dict) and header.get("boot") not in (None, boot_id()) else "left"


def require_none_left(own: Path, others: Path | None) -> tuple[str, ...]:
    """Refuse to begin an experiment while an earlier one may have left values changed: in one's ``own`` journals, or
    in ``others``, those of the last experiment on this machine. The machine's lock must be held.

    Void journals of one's own are removed; returns a note on each. Raises RequestError.
    """
    found = leftovers(own)
    if found.left:
        raise RequestError(
            f"an experiment was ended without putting everything back; its journal is {found.left[0]}",
            hint="run `ajuste restore`: it puts back what was changed",
        )
    if others is not None and others != own and (left := leftovers(others).left):
        raise RequestError(
            f"an experiment of another home was ended without putting everything back; its journal is {left[0]}",
            hint=f"run `ajuste restore {others}`: it puts back what was changed",
        )
    notes = []
    for path in found.void:
        path.unlink(missing_ok=True)
        notes.append(f"{path.name} was of an earlier boot, which took its changes with it; removed")
    return tuple(notes)


class OldValue(BaseModel):
    """A step of a journal: ``tunable`` gets back the value ``before``."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    undo: Literal["value"]
    tunable: str
    location: Location
    before: str
    companion: bool = False


def old_values(journal: Path) -> list[OldValue]:
    """What a journal of this boot would put back; what it says beside values is left out. The agent is the one who
    reads it in earnest. Raises RequestError for what is no journal.
    """
    if _state(journal) == "void":
        return []
    try:
        # Whatever follows the last whole line was never carried out.
        lines = journal.read_text(encoding="utf-8").split("\n")[1:-1]
        documents = [json.loads(line) for line in lines]
        values = [d for d in documents if isinstance(d, dict) and d.get("undo") == "value"]
        return [OldValue.model_validate(value) for value in values]
    except (OSError, ValueError, RecursionError) as error:
        raise RequestError(f"{journal} is no journal that can be read: {str(error).splitlines()[0]}") from error


def require_readable(journals: Sequence[Path]) -> None:
    """Raises RequestError for journals that are root's if we are not."""
    for journal in journals:
        if not os.access(journal, os.R_OK | os.W_OK):
            raise RequestError(
                f"the journal {journal} is not yours to carry out",
                hint=f"it needs root: sudo ajuste restore {shlex.quote(str(journal))}",
            )


@dataclass(frozen=True)
class Restoration:
    """What ``ajuste-agent restore`` said: ``events`` as it printed them, ``complaint`` for people; ``done`` if it was
    all of it.
    """

    done: bool
    events: tuple[dict[str, Any], ...] = field(default=())
    complaint: str = ""


def restore_from(places: Sequence[Path]) -> Restoration:
    """Put back what these journals (or all in these directories) say. With none there is nothing to do."""
    if not places:
        return Restoration(True)
    ended = subprocess.run([native_program(AGENT), "restore", *places], capture_output=True, check=False)
    events: tuple[dict[str, Any], ...] = tuple(json.loads(line) for line in ended.stdout.splitlines())
    return Restoration(ended.returncode == 0, events, ended.stderr.decode(errors="replace").strip())

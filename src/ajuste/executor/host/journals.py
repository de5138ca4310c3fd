"""Journals that experiments on this machine left behind, and putting back what they say.

The agent reads them (``ajuste-agent journals``); here is what may be written because of them, and who is refused.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ConfigDict, TypeAdapter

from ajuste.catalogue.loader import catalogue
from ajuste.executor.host.machine import files_in
from ajuste.executor.host.machine_lock import CLEARING_SECONDS
from ajuste.machine.home import AGENT, native_program
from ajuste.machine.installation import as_root
from ajuste.model.base import BaseModel, ClosedModel
from ajuste.model.error import RequestError, RunError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Location
from ajuste.model.tunable import Marker

_LOG: Final = logging.getLogger(__name__)

REGISTRY: Final = Path("/var/lib/ajuste/journals")
"""Where the agent enters every journal of this machine that is not settled, whichever home it is in."""

_PAUSE_SECONDS: Final = 0.05

State = Literal["left", "void", "gone", "held", "kept", "damaged", "unknown", "foreign", "malformed"]


class OldValue(BaseModel):
    """A step of a journal: ``tunable`` gets back the value ``before``."""

    model_config = ConfigDict(extra="ignore")
    undo: Literal["value"]
    tunable: str
    location: Location
    before: str
    companion: bool = False


class Made(BaseModel):
    """A step of a journal: what is at ``path`` is removed."""

    model_config = ConfigDict(extra="ignore")
    undo: Literal["made"]
    path: str


class JournalLeft(ClosedModel):
    """A journal as ``ajuste-agent journals`` lists it. ``left``: of this boot, so that ``steps`` are to be undone; the
    other states are those of ``ajuste.model.event.Journal``, as restoring would report them.
    """

    path: str
    state: State
    message: str | None
    steps: tuple[OldValue | Made, ...]

    @property
    def old_values(self) -> tuple[OldValue, ...]:
        return tuple(step for step in self.steps if isinstance(step, OldValue))

    @property
    def stands_in_the_way(self) -> bool:
        """Whether values of this machine may still be changed because of it."""
        return self.state not in ("void", "gone", "foreign")


@dataclass(frozen=True)
class Scope:
    """Which journals: those ``places`` (journals, or directories of them), and with ``registered`` all that the
    machine's registry names.
    """

    places: tuple[Path, ...] = ()
    registered: bool = True
    registry: Path = REGISTRY

    @property
    def arguments(self) -> list[str | Path]:
        return ["--registry", self.registry, *(["--all"] if self.registered else []), *self.places]


def scope_of(own: Path, registry: Path = REGISTRY) -> Scope:
    """One's ``own`` directory of journals, if it is there, and whatever the registry names."""
    try:
        own.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return Scope(registry=registry)
    except OSError:
        # What cannot be looked at is the agent's to report.
        pass
    return Scope((own,), registry=registry)


_LIST: Final = TypeAdapter(JournalLeft)


def journals_in(scope: Scope) -> tuple[JournalLeft, ...]:
    """What is there, the oldest first; nothing is changed. While somebody holds the machine's lock they are in use."""
    if not scope.registered and not scope.places:
        return ()
    ended = _agent("journals", scope)
    if ended.returncode not in (0, 1):
        raise RunError(f"the agent cannot list journals: {_complaint(ended)}")
    return tuple(_LIST.validate_json(line) for line in ended.stdout.splitlines())


def journals_at_rest(scope: Scope) -> tuple[JournalLeft, ...]:
    """As ``journals_in``, once a guardian at work or a process that was just killed has let go of its own: what a held
    journal says is not known, and so what may be written because of it.
    """
    deadline = time.monotonic() + CLEARING_SECONDS
    while True:
        found = journals_in(scope)
        if all(journal.state != "held" for journal in found) or time.monotonic() > deadline:
            return found
        time.sleep(_PAUSE_SECONDS)


def require_none_left(own: Path, registry: Path = REGISTRY) -> tuple[str, ...]:
    """Refuse to begin an experiment while an earlier one may have left values changed, whichever home it is of. The
    machine's lock must be held.

    Journals of an earlier boot are removed; returns a note on each. Raises RequestError.
    """
    found = journals_in(scope_of(own, registry))
    if standing := [journal for journal in found if journal.stands_in_the_way]:
        first = standing[0]
        about = f" ({first.message})" if first.message else ""
        raise RequestError(
            f"an experiment may have left values changed: its journal {first.path} is not settled{about}",
            hint=_advice(first),
        )
    void = [Path(journal.path) for journal in found if journal.state == "void"]
    if not void or os.geteuid() != 0:
        return ()
    restored = restore_from(Scope(tuple(void), registered=False, registry=registry), ())
    events = [event for event in restored.events if event.get("state") == "void"]
    return tuple(f"{Path(event['path']).name}: {event['message']}; removed" for event in events)


def _advice(journal: JournalLeft) -> str:
    path = shlex.quote(journal.path)
    if journal.state in ("unknown", "malformed", "damaged"):
        return f"run `ajuste restore`, check the values by hand, and then `ajuste restore --discard {path}`"
    return "run `ajuste restore`: it puts back what was changed"


def require_readable(journals: Iterable[Path]) -> None:
    """Raises RequestError for journals that are root's if we are not."""
    if os.geteuid() == 0:
        return
    for journal in journals:
        if not os.access(journal, os.R_OK | os.W_OK):
            raise RequestError(
                f"the journal {journal} belongs to another user",
                hint=f"run {as_root(['restore', str(journal)])}",
            )


def permitted(values: Iterable[OldValue]) -> tuple[Location, ...]:
    """Where a journal's tunables and their companions are, looked up again in the catalogue for this kernel.

    A journal is a file, and may name any place: only these are written because of it.
    """
    known = catalogue()
    version = KernelVersion.parse(os.uname().release)
    found: dict[Location, None] = {}
    for name in dict.fromkeys(value.tunable for value in values):
        try:
            tunable = known.find_tunable(name)
            location = known.locate(tunable, version)
            companions = known.companions(tunable, version, files_in)
        except RequestError:
            continue
        own = () if isinstance(location, Marker) else (location,)
        found.update(dict.fromkeys((*own, *companions)))
    return tuple(found)


@dataclass(frozen=True)
class Restoration:
    """What ``ajuste-agent restore`` said: ``events`` as it printed them, ``complaint`` for people; ``done`` if it was
    all of it.
    """

    done: bool
    events: tuple[dict[str, Any], ...] = field(default=())
    complaint: str = ""


_PLACES: Final = TypeAdapter(tuple[Location, ...])


def restore_from(scope: Scope, places: Sequence[Location]) -> Restoration:
    """Put back what the journals say, but write only ``places`` (see ``permitted``)."""
    if not scope.registered and not scope.places:
        return Restoration(done=True)
    ended = _agent("restore", scope, "--permit", "-", told=_PLACES.dump_json(tuple(places)))
    events: tuple[dict[str, Any], ...] = tuple(json.loads(line) for line in ended.stdout.splitlines())
    restored = {one["tunable"]: one["value"] for one in events if one.get("event") == "restored"}
    _LOG.info("settings restored", extra={"settings": restored, "complete": ended.returncode == 0})
    return Restoration(ended.returncode == 0, events, _complaint(ended))


def restore_all(scope: Scope) -> Restoration:
    """Put back what the journals say, where the catalogue has their tunables."""
    return restore_from(scope, permitted(value for journal in journals_at_rest(scope) for value in journal.old_values))


def discard(journals: Sequence[Path]) -> None:
    """Remove journals whatever they say. Raises RunError for those that are still there."""
    ended = _agent("discard", Scope(tuple(journals), registered=False))
    if ended.returncode != 0:
        raise RunError(f"not all journals were discarded: {_complaint(ended)}")


def _agent(command: str, scope: Scope, *options: str, told: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    argv = [native_program(AGENT), command, *options, *scope.arguments]
    return subprocess.run(argv, input=told if told is not None else b"", capture_output=True, check=False)


def _complaint(ended: subprocess.CompletedProcess[bytes]) -> str:
    return ended.stderr.decode(errors="replace").strip()

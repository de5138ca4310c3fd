"""Journals that experiments on this machine left behind, what they restore, and a comparison with what was before.

The agent reads them (``ajuste-agent journals``); here is what may be written because of them, and who is refused.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.executor.executor import Executor
from ajuste.executor.host.availability import current_values, files_in, instances_here, of_this_machine
from ajuste.executor.host.caller import Completion
from ajuste.executor.host.machine_lock import CLEARING_SECONDS
from ajuste.machine.files import make_directory, replace_file
from ajuste.machine.home import AGENT, Home, as_root, native_program
from ajuste.machine.session import boot_id
from ajuste.model.base import BaseModel, ClosedModel
from ajuste.model.error import RequestError, RunError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Location, ServerSetting, Write
from ajuste.model.tunable import Marker, Tunable, same_value

_LOG: Final = logging.getLogger(__name__)

REGISTRY: Final = Path("/var/lib/ajuste/journals")
"""The agent's registry of all journals of this machine that are not settled, in any home."""

ADOPTED: Final = Path("/var/lib/ajuste/adopted")
"""Journals and records of values that stay (see ``adoption``). They have a registry of their own, beside the other."""

JOURNAL: Final = ".journal"
"""The suffix of journals, as the agent names them."""

_PAUSE_SECONDS: Final = 0.05

State = Literal["left", "void", "gone", "held", "kept", "damaged", "unknown", "foreign", "malformed"]

_PLACES: Final = TypeAdapter(tuple[Location, ...])
MOST_KEPT: Final = 8
_NAME = re.compile(r"([0-9]{8})-[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}\.json")
_PART = re.compile(rf"\.{_NAME.pattern}\.[0-9]+(-[0-9]+)?")


class OldValue(BaseModel):
    """A step of a journal: ``tunable`` gets back the value ``before``."""

    model_config = ConfigDict(extra="ignore")
    undo: Literal["value"]
    tunable: str
    location: Location
    before: str
    companion: bool = False
    watched: bool = False
    """The run does not write it: a daemon of the run may."""

    @property
    def before_words(self) -> str:
        """Return the old value as a person knows it; PostgreSQL's is an entry of its file, or none (see
        ``place/postgresql.rs``).
        """
        if not isinstance(self.location, ServerSetting) or self.location.kind != "postgresql":
            return self.before
        value = self.before.removeprefix("with:").partition(":")[0]
        return "as its configuration says" if self.before.startswith("without:") else value


def journal_of_values(values: Iterable[OldValue], *, session: str, pid: int, started_ticks: int, began_s: int) -> bytes:
    """Return a journal of this boot, without checksums, from which the agent restores ``values``. Its owner is the
    process ``pid`` that started at the tick ``started_ticks``.
    """
    owner = {"session": session, "pid": pid, "started_ticks": started_ticks, "began_s": began_s}
    lines = ({"journal": 1, **owner, "boot": boot_id()}, *(value.model_dump(mode="json") for value in values))
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


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
        """Return whether values of this machine may still be changed because of it."""
        return self.state not in ("void", "gone", "foreign")


@dataclass(frozen=True)
class Scope:
    """The journals to read: ``places`` (journals, or directories of them), with ``registered`` also the registry's."""

    places: tuple[Path, ...] = ()
    registered: bool = True
    registry: Path = REGISTRY

    @property
    def arguments(self) -> list[str | Path]:
        return ["--registry", self.registry, *(["--all"] if self.registered else []), *self.places]


def journal_scope(directory: Path, registry: Path = REGISTRY) -> Scope:
    """Return the ``directory`` of journals, if it exists, and those that the registry names."""
    try:
        directory.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return Scope(registry=registry)
    except OSError:
        # The agent reports what cannot be read.
        pass
    return Scope((directory,), registry=registry)


_LIST: Final = TypeAdapter(JournalLeft)


def record_of(journal: Path) -> Path:
    """Return the file beside a journal that says that its values were adopted."""
    return journal.with_suffix(".json")


def scopes_left(directory: Path, registry: Path = REGISTRY) -> tuple[Scope, ...]:
    """Return the scope of ``journal_scope``, and one of interrupted adoptions: journals without a record."""
    usual, adopted = journal_scope(directory, registry), registry.with_name(ADOPTED.name)
    if not adopted.is_dir():
        return (usual,)
    paths = [Path(journal.path) for journal in journals_in(Scope((adopted,), registry=adopted))]
    left = tuple(path for path in paths if not record_of(path).exists())
    return (usual, Scope(left, registered=False, registry=adopted)) if left else (usual,)


def journals_in(scope: Scope) -> tuple[JournalLeft, ...]:
    """Return the journals, the oldest first, without any change. While somebody holds the machine's lock they are in
    use.
    """
    if not scope.registered and not scope.places:
        return ()
    ended = _agent("journals", scope)
    if ended.returncode not in (0, 1):
        raise RunError(f"the agent cannot list journals: {_complaint(ended)}")
    return tuple(_LIST.validate_json(line) for line in ended.stdout.splitlines())


def journals_at_rest(scope: Scope) -> tuple[JournalLeft, ...]:
    """Return ``journals_in`` once no journal is held, or after ``CLEARING_SECONDS``.

    A guardian at work, or a process that was just killed, lets go soon. The content of a held journal is unknown, and
    so is which values restoring may write.
    """
    deadline = time.monotonic() + CLEARING_SECONDS
    while True:
        journals = journals_in(scope)
        if all(journal.state != "held" for journal in journals) or time.monotonic() > deadline:
            return journals
        time.sleep(_PAUSE_SECONDS)


def require_none_left(directory: Path, registry: Path = REGISTRY) -> tuple[str, ...]:
    """Refuse to begin an experiment while an earlier one may have left values changed, whichever home it is of. The
    machine's lock must be held.

    Journals of an earlier boot are removed; returns a note on each. Raises RequestError.
    """
    return tuple(note for scope in scopes_left(directory, registry) for note in _require_settled(scope))


def _require_settled(scope: Scope) -> tuple[str, ...]:
    journals = journals_in(scope)
    if standing := [journal for journal in journals if journal.stands_in_the_way]:
        first = standing[0]
        about = f" ({first.message})" if first.message else ""
        hint = "run `ajuste restore`: it restores what was changed, or says how to go on"
        if first.state in ("unknown", "malformed", "damaged"):
            discard = f"`ajuste restore --discard {shlex.quote(first.path)}`"
            hint = f"run `ajuste restore`, check the values by hand, and then {discard}"
        raise RequestError(
            f"an experiment may have left values changed: its journal {first.path} is not settled{about}", hint=hint
        )
    void = [Path(journal.path) for journal in journals if journal.state == "void"]
    if not void or os.geteuid() != 0:
        return ()
    restored = restore_from(Scope(tuple(void), registered=False, registry=scope.registry), ())
    events = [event for event in restored.events if event.get("state") == "void"]
    return tuple(f"{Path(event['path']).name}: {event['message']}; removed" for event in events)


def require_readable(journals: Iterable[Path]) -> None:
    """Raise RequestError for journals of root if this user is another."""
    if os.geteuid() == 0:
        return
    for journal in journals:
        if not os.access(journal, os.R_OK | os.W_OK):
            raise RequestError(
                f"the journal {journal} belongs to another user",
                hint=f"run {as_root(['restore', str(journal)])}",
            )


def permitted(values: Iterable[OldValue]) -> tuple[Location, ...]:
    """Return where a journal's tunables and their companions are, looked up again in the catalogue for this kernel. A
    journal is a file, and may name any place: only these are written because of it.
    """
    known = catalogue()
    version = KernelVersion.parse(os.uname().release)
    locations: dict[Location, None] = {}
    for name in dict.fromkeys(value.tunable for value in values):
        try:
            tunable = known.find_tunable(name)
            location = known.locate(tunable, version)
            companions = known.companions(tunable, version, files_in)
        except RequestError:
            continue
        itself = () if isinstance(location, Marker) else (location,)
        locations.update(dict.fromkeys((*itself, *companions)))
    return tuple(locations)


@dataclass(frozen=True)
class Restoration:
    """The result of ``ajuste-agent restore``: its ``events``, a ``complaint`` for people; ``done`` if complete."""

    done: bool
    events: tuple[dict[str, Any], ...] = field(default=())
    complaint: str = ""


def restore_from(scope: Scope, places: Sequence[Location]) -> Restoration:
    """Put back what the journals say, but write only ``places`` (see ``permitted``)."""
    if not scope.registered and not scope.places:
        return Restoration(done=True)
    ended = _agent("restore", scope, "--permit", "-", answers=_PLACES.dump_json(tuple(places)))
    events: tuple[dict[str, Any], ...] = tuple(json.loads(line) for line in ended.stdout.splitlines())
    restored = {event["tunable"]: event["value"] for event in events if event.get("event") == "restored"}
    _LOG.info("settings restored", extra={"settings": restored, "complete": ended.returncode == 0})
    return Restoration(ended.returncode == 0, events, _complaint(ended))


def restore_all(scope: Scope) -> Restoration:
    """Put back what the journals say, where the catalogue has their tunables."""
    return restore_from(scope, permitted(value for journal in journals_at_rest(scope) for value in journal.old_values))


def event_words(event: Mapping[str, Any]) -> str:
    """Return an event on a value or a journal in words; empty for any other."""
    match event:
        case {"event": "restored", "tunable": name, "found": replaced, "value": value}:
            return f"{name} is {value} ({'as it was' if replaced == value else f'it was {replaced}'})"
        case {"event": "failed", "message": message}:
            return f"not restored: {message}"
        case {"event": "journal", "path": path, "state": state}:
            message = event.get("message")
            return f"{path}: {state}{f', {message}' if message else ''}"
    return ""


def discard(journals: Sequence[Path]) -> None:
    """Remove journals whatever they say. Raises RunError for those that are still there."""
    for registry in (REGISTRY, ADOPTED):
        paths = tuple(path for path in journals if (path.absolute().parent == ADOPTED) == (registry == ADOPTED))
        ended = _agent("discard", Scope(paths, registered=False, registry=registry)) if paths else None
        if ended is not None and ended.returncode != 0:
            raise RunError(f"not all journals were discarded: {_complaint(ended)}")
        if registry == ADOPTED:
            for journal in paths:
                record_of(journal).unlink(missing_ok=True)


def _agent(
    command: str, scope: Scope, *options: str, answers: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    argv = [native_program(AGENT), command, *options, *scope.arguments]
    return subprocess.run(argv, input=answers if answers is not None else b"", capture_output=True, check=False)


def _complaint(ended: subprocess.CompletedProcess[bytes]) -> str:
    return ended.stderr.decode(errors="replace").strip()


# The state of the machine before a run changed anything, and its differences now.
#
# One small file a run, in the state directory of the home. ``ajuste restore --verify`` compares with the last one.


class KeptState(ClosedModel):
    """``values`` of all tunables that could be read, by name; ``written`` are those of them that the run writes, and
    that the kernel changes along.
    """

    version: Literal[1] = 1
    boot: str
    run: str
    kept: str
    values: dict[str, str]
    written: tuple[str, ...]


@dataclass(frozen=True)
class StateDifference:
    """A tunable that differs from the saved state.

    ``now`` is ``None`` if the value cannot be read any more, ``by_ajuste`` true if a run of this boot wrote it.
    """

    tunable: str
    before: str
    now: str | None
    by_ajuste: bool


@dataclass(frozen=True)
class Verification:
    """The differences from the state before the run ``since``, of ``checked`` tunables."""

    since: KeptState
    checked: int
    differences: tuple[StateDifference, ...]


def kept_states(home: Home) -> Path:
    """Return the directory of states."""
    return home.state / "before-runs"


def keep_state(home: Home, run: str, writes: Sequence[Write], target: Executor, catalogue: Catalogue) -> None:
    """Read all tunables of the machine that ``target`` is and keep their values, if ``run`` has none of this boot yet.

    Nothing may have been written. Raises OSError where it cannot be kept.
    """
    directory = kept_states(home)
    files = _files(directory)
    if any(state.run == run for state in _of_this_boot(files)):
        return
    values, places = read_settings(target, catalogue)
    completion = Completion(catalogue, KernelVersion.parse(target.hello.kernel))
    changed: set[Location] = set()
    for write in map(completion.completed, writes):
        changed.update((write.location, *write.companions))
    state = KeptState(
        boot=boot_id(),
        run=run,
        kept=datetime.now(UTC).isoformat(timespec="seconds"),
        values=values,
        written=tuple(name for name in values if places[name] in changed),
    )
    make_directory(directory)
    for part in [path for path in directory.iterdir() if _PART.fullmatch(path.name)]:
        part.unlink(missing_ok=True)  # of a process that was killed: only one has the machine
    number = int(files[-1].name[:8]) + 1 if files else 1
    replace_file(directory / f"{number:08}-{run}.json", state.model_dump_json().encode(), mode=0o600, on_disk=True)
    for old in _files(directory)[:-MOST_KEPT]:
        old.unlink(missing_ok=True)


def verify(home: Home, target: Executor, catalogue: Catalogue) -> Verification:
    """Compare the machine that ``target`` is with the state before the last run of this boot.

    Raises RequestError where there is none, RunError where none can be read.
    """
    files = _files(kept_states(home))
    if not files:
        raise RequestError(
            f"there is no state to compare with: no run of this home ({home.state}) has changed this machine",
            hint="run a study that writes tunables on this machine first; that saves the state",
        )
    states = _of_this_boot(files)
    if not states:
        if not any(map(_parsed, files)):
            raise RunError(f"cannot read the saved state: {files[-1]}")
        raise RequestError(
            "the saved state is from an earlier boot; the reboot has undone all changes",
            hint="compare again after the next run that writes tunables",
        )
    since = states[-1]
    written = {name for state in states for name in state.written}
    now, _ = read_settings(target, catalogue, list(since.values))
    return Verification(
        since,
        len(since.values),
        tuple(
            StateDifference(name, before, now.get(name), name in written)
            for name, before in since.values.items()
            if name not in now or not same_value(before, now[name])
        ),
    )


def keeper(home: Home, run: str, writes: Sequence[Write], catalogue: Catalogue) -> Callable[[Executor], None]:
    """``keep_state`` for a target that is still to be entered; nothing is kept of a run that writes nothing."""

    def keep(target: Executor) -> None:
        if writes:
            keep_state(home, run, writes, target, of_this_machine(catalogue))

    return keep


def read_settings(
    target: Executor, catalogue: Catalogue, names: Sequence[str] | None = None
) -> tuple[dict[str, str], dict[str, Location]]:
    """Return the values of all tunables that can be read, or of those with ``names``, and where they are."""
    version = KernelVersion.parse(target.hello.kernel)
    tunables = _all(catalogue, version) if names is None else _named(catalogue, names)
    current = current_values(target, tunables)
    values = {name: tunable.value for name, tunable in current.items() if tunable.value is not None}
    places = {tunable.name: catalogue.locate(tunable, version) for tunable in tunables if tunable.name in values}
    return values, places  # type: ignore[return-value] # what has a value is a place of the machine


def _all(catalogue: Catalogue, version: KernelVersion) -> list[Tunable]:
    tunables = []
    for tunable in catalogue.tunables.values():
        if not tunable.parts:
            tunables.append(tunable)
        tunables += [catalogue.instance(tunable, which) for which in instances_here(catalogue, tunable, version)]
    return tunables


def _named(catalogue: Catalogue, names: Sequence[str]) -> list[Tunable]:
    tunables = []
    for name in names:
        try:
            tunables.append(catalogue.find_tunable(name))
        except RequestError:  # Of another version of Ajuste.
            continue
    return tunables


def _files(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if _NAME.fullmatch(path.name))
    except FileNotFoundError:
        return []


def _of_this_boot(files: Sequence[Path]) -> list[KeptState]:
    return [state for state in map(_parsed, files) if state is not None and state.boot == boot_id()]


def _parsed(path: Path) -> KeptState | None:
    try:
        return KeptState.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None

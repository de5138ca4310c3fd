"""Values that stay after their experiment: held on probation by an agent of their own, then left in force.

The agent's journal is in ``/var/lib/ajuste/adopted``. On probation it is a journal like any other: the agent restores,
or its guardian, or ``ajuste restore``. To adopt, both are killed, and a record is put beside the journal. The record
is what counts: until it is there, whole and on the disk, the journal is that of an interrupted experiment.
"""

from __future__ import annotations

import logging
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import ValidationError

from ajuste.executor.host.agent_process import AgentLostError, AgentProcess
from ajuste.executor.host.journals import (
    ADOPTED,
    JOURNAL,
    OldValue,
    Scope,
    event_words,
    journal_of_values,
    journals_at_rest,
    record_of,
    restore_all,
)
from ajuste.machine.files import file_sha256, make_directory, remove_file, replace_file, sync_to_disk
from ajuste.machine.home import as_root
from ajuste.machine.session import boot_id, started_ticks
from ajuste.model.base import ClosedModel
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import End, Event, Failed, Hello, Started, Written, parse_event
from ajuste.model.plan import Location

_LOG: Final = logging.getLogger(__name__)
_BEGIN_SECONDS: Final = 30.0
_RECORD: Final = record_of(Path("any")).suffix
# Any user may see what is adopted; journals are root's.
_MODE: Final = 0o755
# Where systemd and its units read files at boot.
READ_AT_BOOT: Final = frozenset(map(Path, ("/etc/sysctl.d", "/etc/systemd/system", "/usr/local/sbin")))
_ROLLS: Final = Path("/dev/shm")  # noqa: S108 - the agent's (see ``process/roll.rs``)


class AdoptedValue(ClosedModel):
    """A tunable that was ``before`` and is ``value`` now, and all ``places`` that go back with it."""

    tunable: str
    before: str
    value: str
    places: tuple[Location, ...]


class BootFile(ClosedModel):
    """A file for the next boots, as it was written: one that was edited since is a person's."""

    path: str
    sha256: str

    @property
    def is_read_at_boot(self) -> bool:
        return Path(self.path).parent in READ_AT_BOOT

    @property
    def is_unchanged(self) -> bool:
        try:
            return file_sha256(Path(self.path)) == self.sha256
        except OSError:
            return False


class Adoption(ClosedModel):
    """The winner of ``run`` that stays in force, with its boot, time and evidence.

    ``unit`` applies ``files`` at boot if they are no sysctls. ``old`` is what goes back after a reboot.
    """

    version: Literal[1] = 1
    run: str
    study: str
    configuration: str
    boot: str
    adopted: str
    probation_s: float
    journal: str
    values: tuple[AdoptedValue, ...]
    old: tuple[OldValue, ...] = ()
    evidence: tuple[str, ...]
    files: tuple[BootFile, ...] = ()
    unit: str = ""

    @property
    def is_of_this_boot(self) -> bool:
        return self.boot == boot_id()

    @property
    def is_set_at_boot(self) -> bool:
        """Return whether every boot sets the values: all files are where they are read, and as they were written."""
        return bool(self.files) and all(file.is_read_at_boot and file.is_unchanged for file in self.files)

    @property
    def is_in_force(self) -> bool:
        return self.is_of_this_boot or self.is_set_at_boot

    @property
    def places(self) -> frozenset[Location]:
        return frozenset(place for value in self.values for place in value.places)

    @property
    def settings(self) -> str:
        """Return the values, in words."""
        return ", ".join(f"{value.tunable} = {value.value} (was {value.before})" for value in self.values)

    @property
    def undo(self) -> str:
        return undo_command(self.run)

    @property
    def at_boot(self) -> str:
        """Return what sets the values at boot, in words."""
        paths = [file.path for file in self.files]
        if missing := [path for path in paths if not Path(path).exists()]:
            return f"not set at boot, for {' and '.join(missing)} is missing"
        if elsewhere := [file.path for file in self.files if not file.is_read_at_boot]:
            return f"set at boot once {' and '.join(elsewhere)} is installed"
        files = [f"{file.path}{'' if file.is_unchanged else ' (edited since)'}" for file in self.files]
        return f"set at boot by {' and '.join(files)}" if files else "not set at boot"

    def as_json(self) -> dict[str, Any]:
        """Return the notice for people, as a document."""
        document = self.model_dump(mode="json", include={"run", "study", "configuration", "adopted"})
        values = [value.model_dump(exclude={"places"}) for value in self.values]
        return {**document, "values": values, "in_force": self.is_in_force, "at_boot": self.at_boot, "undo": self.undo}

    def __str__(self) -> str:
        since = "" if self.is_in_force else ", before the last reboot"
        return (
            f"{self.settings}: adopted from run {self.run} on {self.adopted[:16].replace('T', ' ')} UTC{since}; "
            f"{self.at_boot}; undo with {self.undo}"
        )


def undo_command(run: str) -> str:
    """Return the command that undoes what was adopted from ``run``, which only root can."""
    return as_root(["restore", "--run", run])


class HeldPlan:
    """Carries out a plan by an agent whose journal is one of adoptions. ``lock`` is the machine's, which must be held.

    A context manager: leaving puts the old values back, unless its values were adopted.
    """

    def __init__(self, plan: bytes, lock: int, directory: Path = ADOPTED) -> None:
        self._plan = plan
        self._lock = lock
        self._directory = directory
        self._is_left = False

    def __enter__(self) -> Self:
        place = str(self._directory)
        make_directory(self._directory, _MODE)
        options = ("--hold-fd", str(self._lock), "--journal", place, "--registry", place)
        self._agent = AgentProcess(options, [self._lock])
        self._session = f"{self._agent.pid}-{started_ticks(self._agent.pid)}"
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_left:
            self._agent.end(at_once=True)
        self._agent.close()
        journal = self._journal()
        if journal is None or record_of(journal).exists():
            return
        if not restore_all(_scope(journal)).done:
            raise RunError(
                f"not everything is restored: {journal} has the rest", hint="run `ajuste restore` to try again"
            )

    def begin(self) -> tuple[Written, ...]:
        """Put the values in force and start the workload; returns what was written. Raises RunError."""
        written: list[Written] = []
        try:
            hello = parse_event(self._agent.read_line(_BEGIN_SECONDS))
            if not isinstance(hello, Hello):
                raise RunError(f"the agent does not work on this machine: it sent {hello.event} instead of hello")
            self._agent.send(self._plan)
            while not isinstance(event := parse_event(self._agent.read_line(_BEGIN_SECONDS)), Started):
                match event:
                    case Written():
                        written.append(event)
                    case Failed():
                        raise RunError(f"the winner cannot be put in force: {event.message}")
                    case End():
                        raise AgentLostError("it ended the plan before its workload")
        except AgentLostError as lost:
            raise self._lost(lost) from lost
        return tuple(written)

    def ended_within(self, seconds: float) -> tuple[Event, ...] | None:
        """Return the last events if the plan ended, and the old values are back; else None. Raises RunError."""
        try:
            stream = self._agent.stream_within(seconds)
        except AgentLostError as lost:
            raise self._lost(lost) from lost
        return None if stream is None else tuple(map(parse_event, stream.splitlines()))

    def kill_unresponsive(self, overdue_s: float) -> str:
        return self._agent.kill_unresponsive(overdue_s)

    def leave_in_force(self) -> Path:
        """End the agent without restoring; returns its journal, for ``adopt``. Raises RunError."""
        journal = self._journal()
        if journal is None:
            raise self._lost(AgentLostError("it has no journal"))
        try:
            self._agent.abandon(journal)
        except AgentLostError as lost:
            raise self._lost(lost) from lost
        self._is_left = True
        return journal

    def _journal(self) -> Path | None:
        # The name of a session ends with its process, as ``safety/session.rs`` has it.
        return next(self._directory.glob(f"*-{self._session}{JOURNAL}"), None)

    def _lost(self, lost: AgentLostError) -> RunError:
        about = f", saying: {self._agent.complaint}" if self._agent.complaint else ""
        return RunError(f"the agent was lost: {lost}{about}; nothing was adopted, and the old values are restored")


def _scope(journal: Path) -> Scope:
    return Scope((journal,), registered=False, registry=journal.parent)


def old_values(journal: Path) -> tuple[OldValue, ...]:
    """Return what a journal would restore. Raises RunError."""
    return tuple(value for left in journals_at_rest(_scope(journal)) for value in left.old_values)


def adopt(adoption: Adoption, directory: Path = ADOPTED) -> None:
    """Put the record in its place: from now on it is adopted. Raises OSError."""
    journal = directory / adoption.journal
    _forget_processes(journal)
    replace_file(record_of(journal), adoption.model_dump_json().encode(), mode=0o644, on_disk=True)
    sync_to_disk(directory)
    _LOG.info("adopted", extra={"run": adoption.run, "settings": adoption.settings})


def _forget_processes(journal: Path) -> None:
    # The processes that the agent started are dead. Weeks later others may have their numbers, and restoring kills all
    # processes on the agent's roll.
    (_ROLLS / f"ajuste-{'-'.join(journal.stem.split('-')[-2:])}").unlink(missing_ok=True)


def adoptions(directory: Path = ADOPTED) -> tuple[Adoption, ...]:
    """Return what is adopted on this machine, the oldest first: names of journals begin with the time."""
    records = []
    for path in sorted(directory.glob(f"*{_RECORD}")):
        try:
            records.append(Adoption.model_validate_json(path.read_bytes()))
        except (OSError, ValidationError):
            _LOG.warning("record of an adoption not read", extra={"path": str(path)})
    return tuple(records)


def adoption_of(run: str, directory: Path = ADOPTED) -> Adoption:
    """Return what is adopted from ``run`` (or from the run whose id begins so). Raises RequestError."""
    known = adoptions(directory)
    matches = [adoption for adoption in known if adoption.run.startswith(run)]
    if len({adoption.run for adoption in matches}) != 1:
        names = ", ".join(adoption.run for adoption in matches or known)
        raise RequestError(
            f"--run {run}: expected a run whose winner is adopted",
            hint=f"name one of {names}" if names else "see `ajuste live --help`",
        )
    return matches[-1]


def adopted_from(changed: Iterable[Location], directory: Path = ADOPTED) -> tuple[Adoption, ...]:
    """Return the adoptions in force that have one of these places."""
    places = frozenset(changed)
    return tuple(adoption for adoption in adoptions(directory) if places & adoption.places and adoption.is_in_force)


def require_latest(adoption: Adoption, directory: Path = ADOPTED) -> None:
    """Raise RequestError if a later adoption has one of the same places: its old value is this one's value."""
    in_force = adopted_from(adoption.places, directory)
    later = [other for other in in_force if other.journal > adoption.journal] if adoption.is_in_force else []
    if later:
        raise RequestError(
            f"run {later[-1].run} was adopted later for the same settings; restore it first",
            hint=f"run {later[-1].undo}",
        )


def withdraw(adoption: Adoption, directory: Path = ADOPTED) -> list[str]:
    """Restore the old values, remove the files for the next boots, then the record; return what was done, in words.

    The machine's lock must be held.

    Raises:
        RunError: Not all was restored; the record is kept.
    """
    journal = directory / adoption.journal
    messages: list[str] = []
    if not adoption.is_of_this_boot and adoption.is_set_at_boot and adoption.old:
        # The file has set the values at this boot, so the old ones go back as in the boot of the adoption, by a journal
        # of this boot. Its process has ended with the earlier boot.
        pid, started = map(int, journal.stem.split("-")[-2:])
        content = journal_of_values(
            adoption.old, session=journal.stem, pid=pid, started_ticks=started, began_s=int(time.time())
        )
        replace_file(journal, content, mode=0o600, on_disk=True)
    if journal.exists():
        _forget_processes(journal)
        restoration = restore_all(_scope(journal))
        for event in restoration.events:
            line = event_words(event)
            if event["event"] == "journal":
                line = "the values stay as the last reboot left them" if event["state"] == "void" else ""
            if line:
                messages.append(line)
        if not restoration.done:
            raise RunError("; ".join([*messages, restoration.complaint, "not everything is restored"]).strip("; "))
    elif adoption.is_of_this_boot:
        messages.append(f"its journal is gone; the values were: {adoption.settings}")
    messages += _remove_files(adoption)
    record_of(journal).unlink(missing_ok=True)
    sync_to_disk(directory)
    return messages


def _remove_files(adoption: Adoption) -> list[str]:
    messages = []
    if adoption.unit:  # Stopping the unit restores the values that it replaced at this boot.
        with suppress(OSError):
            subprocess.run(["systemctl", "disable", "--now", adoption.unit], capture_output=True, check=False)
    for file in adoption.files:
        path = Path(file.path)
        if not path.exists():
            continue
        if file.is_unchanged:
            try:
                remove_file(path)
            except (OSError, RequestError) as failure:
                messages.append(f"{path} stays: {getattr(failure, 'strerror', None) or failure}; remove it by hand")
            else:
                messages.append(f"removed {path}")
        else:
            messages.append(f"{path} was edited since, and stays: remove it by hand")
    return messages

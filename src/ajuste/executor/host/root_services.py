"""Daemons that run as root may change settings of the machine: that is found after each trial, and undone.

All settings that are files of their own are written into a journal before the first such trial. The agent restores what
differs from it, as it does with any journal that is left: also `ajuste restore`, if this process is killed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Final, Self

from ajuste.catalogue.loader import Catalogue
from ajuste.executor.executor import Executor
from ajuste.executor.host.availability import of_this_machine
from ajuste.executor.host.journals import OldValue, Scope, journal_of_values, read_settings, restore_from
from ajuste.machine.files import make_directory, replace_file
from ajuste.machine.home import SERVICE
from ajuste.model.error import RunError
from ajuste.model.event import Output
from ajuste.model.plan import Command, FileLocation, Plan
from ajuste.model.trial import Observation
from ajuste.model.tunable import same_value
from ajuste.model.wording import count_of

_MOST_NAMED: Final = 5
# The heading of tail(1) above each file.
_HEADING: Final = re.compile(r"^==> (/\S+) <==\n", re.MULTILINE)


def root_services(plan: Plan, daemons: frozenset[str]) -> tuple[str, ...]:
    """Return those of ``daemons``, by name, that ``plan`` starts as root."""
    if os.geteuid() != 0 or not daemons:
        return ()
    starts = [
        command.argv
        for command in plan.before
        if command.user is None and PurePath(command.argv[0]).name == SERVICE and command.argv[1:2] == ("start",)
    ]
    names = (argv[argv.index("--name") + 1] for argv in starts)
    return tuple(name for name in names if name in daemons)


class SettingsJournal:
    """A journal in ``directory`` of the ``values`` of settings, by name."""

    @classmethod
    def of_machine(cls, directory: Path, target: Executor, catalogue: Catalogue) -> Self:
        """Read all settings of the machine that ``target`` is that are files of their own and can be written."""
        values, places = read_settings(target, of_this_machine(catalogue))
        files = {name: place for name, place in places.items() if isinstance(place, FileLocation)}
        writable = {name: place for name, place in files.items() if Path(place.path).stat().st_mode & 0o222}
        return cls(directory, {name: (place, values[name]) for name, place in writable.items()})

    def __init__(self, directory: Path, values: Mapping[str, tuple[FileLocation, str]]) -> None:
        self._file = directory / "services.journal"
        self._locations = tuple(location for location, _ in values.values())
        steps = (
            OldValue(undo="value", tunable=name, location=location, before=before)
            for name, (location, before) in values.items()
        )
        # An owner that cannot be alive: the number is that of the first process, which did not start at this tick. Who
        # restores it holds the machine's lock.
        self._content = journal_of_values(steps, session="services", pid=1, started_ticks=2, began_s=3)
        self._before = {name: before for name, (_, before) in values.items()}

    def look(self, plan: Plan) -> Plan:
        """Return a plan that starts the services of ``plan``, prints all settings, and stops them."""
        tail = ("tail", "-v", "-n", "+1", *(location.path for location in self._locations))
        return Plan(
            id="services", before=plan.before, after=plan.after, workload=Command(argv=tail), timeout_ns=plan.timeout_ns
        )

    def changed_while(self, looked: Observation) -> dict[str, tuple[str, str]]:
        """Return by name what is otherwise while services run: the value before, and what was seen by ``look``."""
        text = "".join(
            event.text
            for event in looked.events
            if isinstance(event, Output) and event.role == "workload" and event.stream == "stdout"
        )
        parts = _HEADING.split(text)
        seen = dict(zip(parts[1::2], (content.strip() for content in parts[2::2]), strict=True))
        return {
            name: (before, value)
            for (name, before), location in zip(self._before.items(), self._locations, strict=True)
            if not same_value(before, value := seen.get(location.path, before))
        }

    def keep(self) -> None:
        """Write the journal to the disk. Raises RunError."""
        try:
            make_directory(self._file.parent)
            replace_file(self._file, self._content, mode=0o600, on_disk=True)
        except OSError as error:
            raise RunError(f"cannot write {self._file}, so nothing was changed: {error.strerror}") from error

    def put_back(self) -> dict[str, tuple[str, str]]:
        """Restore what differs, and return it by name: the value before, and what was found.

        Raises:
            RunError: Not everything was restored; the journal stays.
        """
        restored = restore_from(Scope((self._file,), registered=False), self._locations)
        if not restored.done:
            raise RunError(
                f"not all that services changed was restored: {restored.complaint}",
                hint="run `ajuste restore` to try again; the journal is kept until then",
            )
        values = {event["tunable"]: event["found"] for event in restored.events if event.get("event") == "restored"}
        return {name: (self._before[name], value) for name, value in values.items() if value != self._before[name]}


def changes_notes(changed: Mapping[tuple[str, ...], Mapping[str, tuple[str, str]]]) -> list[str]:
    """Return what services changed, by their names, in a sentence each."""
    notes: list[str] = []
    for services, settings in changed.items():
        if not settings:
            continue
        named = [f"{name} from {before} to {value}" for name, (before, value) in list(settings.items())[:_MOST_NAMED]]
        more = [f"{count_of(len(settings) - _MOST_NAMED, 'more setting')}"] if len(settings) > _MOST_NAMED else []
        who = f"Service{'s' * (len(services) > 1)} {' and '.join(services)}"
        notes.append(f"{who} changed {', '.join((*named, *more))}; restored after each trial.")
    return notes

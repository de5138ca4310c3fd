"""Daemons that run as root may change settings of the machine: the agent restores them after each trial."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Final

from ajuste.catalogue.loader import Catalogue
from ajuste.executor.executor import Executor
from ajuste.executor.host.availability import HostMachine, of_this_machine, why_not_writable
from ajuste.executor.host.journals import read_settings
from ajuste.machine.home import SERVICE
from ajuste.model.event import Event, Restored
from ajuste.model.plan import CpuLatency, Plan, Read
from ajuste.model.wording import count_of

_MOST_NAMED: Final = 5


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


def changeable_settings(target: Executor, catalogue: Catalogue) -> tuple[Read, ...]:
    """Return all settings that a program of root can change on the machine that ``target`` is, of every kind."""
    here, machine = of_this_machine(catalogue), HostMachine()
    _, places = read_settings(target, here)
    tunables = {name: here.find_tunable(name) for name in places}
    names = [
        name
        for name, place in places.items()
        # A program's own bound on latency ends with it.
        if not isinstance(place, CpuLatency) and not why_not_writable(here, tunables[name], machine)
    ]
    # The agent restores the last one first: a disk's scheduler before what depends on it.
    names.sort(key=lambda name: bool(tunables[name].companions or tunables[name].companion_directories))
    return tuple(Read(tunable=name, location=places[name]) for name in names)


def changes_of_services(events: Iterable[Event], plan: Plan) -> dict[str, tuple[str, str]]:
    """Return by name what services changed in a trial: the value before, and the one that was found."""
    written = {write.tunable for write in plan.writes}
    restored = [event for event in events if isinstance(event, Restored) and event.tunable not in written]
    return {event.tunable: (event.value, event.found) for event in restored}


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

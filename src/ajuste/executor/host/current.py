"""The values that tunables have on a target now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.catalogue.place import needed_options
from ajuste.executor.host.availability import why_not_there, why_not_writable
from ajuste.executor.host.machine import HostMachine, instances_here
from ajuste.model.error import RequestError
from ajuste.model.event import Failed, ReadBack
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Plan, Read, location_words
from ajuste.model.tunable import Marker, Tunable, marker_words

if TYPE_CHECKING:
    from ajuste.executor.executor import Executor


@dataclass(frozen=True)
class Current:
    """``value`` as the kernel shows it, or ``None`` and the ``problem`` in words. ``path`` is where it was sought."""

    value: str | None = None
    problem: str = ""
    path: str = ""


def current_values(target: Executor, tunables: Sequence[Tunable]) -> dict[str, Current]:
    """Read ``tunables`` on an entered target, by one plan that only reads. Every one of them is in the result.

    Never raises for a value that cannot be read. Raises RunError where the target is lost.
    """
    version = KernelVersion.parse(target.hello.kernel)
    found: dict[str, Current] = {}
    reads: list[Read] = []
    for tunable in tunables:
        try:
            location = catalogue().locate(tunable, version)
        except RequestError as error:
            found[tunable.name] = Current(problem=error.message)
            continue
        if isinstance(location, Marker):
            found[tunable.name] = Current(problem=f"{marker_words(location)}, not of the machine")
        else:
            reads.append(Read(tunable=tunable.name, location=location))
    return found | _read(target, reads, {tunable.name: tunable for tunable in tunables}, version)


def _read(
    target: Executor, reads: list[Read], tunables: dict[str, Tunable], version: KernelVersion
) -> dict[str, Current]:
    if not reads:
        return {}
    observation = target.run(Plan(id="current", reads=tuple(reads)))
    said = {event.tunable: event for event in observation.events if isinstance(event, ReadBack)}
    failed = next((event.message for event in observation.events if isinstance(event, Failed)), "")
    silence = observation.problem or failed or "the agent did not report it"
    return {
        read.tunable: _current(read, said.get(read.tunable), silence, tunables[read.tunable], version) for read in reads
    }


def _current(read: Read, said: ReadBack | None, silence: str, tunable: Tunable, version: KernelVersion) -> Current:
    path = location_words(read.location)
    if said is None:
        return Current(problem=f"not readable: {silence}", path=path)
    if said.value is not None:
        return Current(value=said.value, path=path)
    error = said.error or "no reason was given"
    if error.endswith(("Permission denied", "Operation not permitted")):
        return Current(problem="not readable: needs root", path=path)
    if not (error.endswith("No such file or directory") or error.startswith("no flag")):
        return Current(problem=f"not readable: {error}", path=path)
    return Current(problem=_absence(tunable, version), path=path)


def _absence(tunable: Tunable, version: KernelVersion) -> str:
    """Why a file that such kernels have may not be there on this one."""
    where = tunable.place_in(version)
    if where is None:
        return "not there"
    wants = [f"a kernel with CONFIG_{option}" for option in needed_options(where, version)]
    if where.path.startswith("/sys/kernel/debug/"):
        wants.append("debugfs mounted at /sys/kernel/debug")
    note = f". {where.note}" if where.note else ""
    return f"not there: it requires {' and '.join(wants)}{note}" if wants else f"not there{note}"


# What of the catalogue this machine has, with its values, and what stands in the way of changing it.


@dataclass(frozen=True)
class Here:
    """``tunable`` is one instance where there are several, and the entry itself where there is none.

    ``locked`` says why it cannot be changed; it is empty if nothing is in the way.
    """

    tunable: Tunable
    current: Current
    locked: str = ""


def tunables_here(
    target: Executor, catalogue: Catalogue, tunables: Sequence[Tunable], machine: HostMachine
) -> list[Here]:
    """Every instance of ``tunables`` on ``machine``, which the entered ``target`` is, with its value.

    Never raises for a value that cannot be read. Raises RunError where the target is lost.
    """
    every = [one for tunable in tunables for one in _instances(catalogue, tunable, machine)]
    absent = {one.name: why_not_there(catalogue, one, machine) for one in every}
    values = current_values(target, [one for one in every if not absent[one.name]])
    found = {one.name: _explained(values.get(one.name, Current()), absent[one.name]) for one in every}
    return [
        Here(
            tunable=one,
            current=found[one.name],
            locked=why_not_writable(catalogue, one, machine) or _refusal(one, found[one.name]),
        )
        for one in every
    ]


def _instances(catalogue: Catalogue, tunable: Tunable, machine: HostMachine) -> list[Tunable]:
    found = instances_here(catalogue, tunable, machine.version, machine.root)
    return [catalogue.instance(tunable, which) for which in found] or [tunable]


def _explained(current: Current, absence: str) -> Current:
    return replace(current, problem=absence) if absence else current


def _refusal(tunable: Tunable, current: Current) -> str:
    """Some files say in place of a choice that there is none."""
    value = current.value
    return f"the kernel says {value}" if tunable.type == "choice" and value and value not in tunable.choices else ""

"""What of the catalogue this machine has, with its values, and what stands in the way of changing it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ajuste.catalogue.loader import Catalogue
from ajuste.model.tunable import Tunable
from ajuste.target.availability import why_not_there, why_not_writable
from ajuste.target.current import Current, current_values
from ajuste.target.listing import instances_here
from ajuste.target.machine import Machine
from ajuste.target.target import Target


@dataclass(frozen=True)
class Here:
    """``tunable`` is one instance where there are several, and the entry itself where there is none.

    ``locked`` says why it cannot be changed; it is empty if nothing is in the way.
    """

    tunable: Tunable
    current: Current
    locked: str = ""


def tunables_here(target: Target, catalogue: Catalogue, tunables: Sequence[Tunable], machine: Machine) -> list[Here]:
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


def _instances(catalogue: Catalogue, tunable: Tunable, machine: Machine) -> list[Tunable]:
    found = instances_here(catalogue, tunable, machine.version, machine.root)
    return [catalogue.instance(tunable, which) for which in found] or [tunable]


def _explained(current: Current, absence: str) -> Current:
    return replace(current, problem=absence) if absence else current


def _refusal(tunable: Tunable, current: Current) -> str:
    """Some files say in place of a choice that there is none."""
    value = current.value
    return f"the kernel says {value}" if tunable.type == "choice" and value and value not in tunable.choices else ""

"""Levels: a value as a person gives it, checked against what a tunable or a workload's parameter can be."""

from __future__ import annotations

import re

from rapidfuzz import process

from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import Tunable
from ajuste.model.workload import Parameter

OFF_WORDS = frozenset({"0", "off", "no", "n", "false", "disabled"})
ON_WORDS = frozenset({"1", "on", "yes", "y", "true", "enabled"})

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_CPU_RANGE = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")


def check_level(tunable: Tunable, text: str, version: KernelVersion | None = None) -> str:
    """``text`` as the kernel would show it: ``Y`` for ``on``, ``750000`` for ``+750000``, ``0-2`` for ``2,0,1``.

    With a ``version`` a choice must be one that such kernels offer. Raises RequestError that says what would be right.
    """
    asked = text.strip()
    if tunable.type == "boolean":
        return _switch(tunable, asked)
    if tunable.type == "cpu-list":
        return _cpus(tunable, asked)
    if tunable.type == "choice":
        place = tunable.place_in(version) if version else None
        return _choice(tunable.name, asked, (place.choices if place else ()) or tunable.choices)
    if not _INTEGER.fullmatch(asked):
        raise RequestError(f"{tunable.name} = {text!r} is not a whole number; {_range(tunable)}")
    value = str(int(asked))
    if value not in tunable.special and not _inside(int(value), tunable.minimum, tunable.maximum):
        raise RequestError(f"{tunable.name} = {value} is out of range; {_range(tunable)}")
    return value


def check_parameter(name: str, parameter: Parameter, text: str) -> str:
    """``text`` as a workload's parameter ``name`` has it. Raises RequestError that says what would be right."""
    asked = text.strip()
    if parameter.type == "flag":
        if asked.lower() in ON_WORDS | OFF_WORDS:
            return "1" if asked.lower() in ON_WORDS else "0"
        raise RequestError(f"{name} = {text!r} is neither on nor off; give 0 or 1")
    if parameter.type == "choice":
        return _choice(name, asked, tuple(parameter.choices))
    limits = f"it is {parameter.minimum} … {parameter.maximum}{_in(parameter.unit)}"
    if not _INTEGER.fullmatch(asked):
        raise RequestError(f"{name} = {text!r} is not a whole number; {limits}")
    if not _inside(int(asked), parameter.minimum, parameter.maximum):
        raise RequestError(f"{name} = {int(asked)} is out of range; {limits}")
    return str(int(asked))


def _switch(tunable: Tunable, asked: str) -> str:
    off, on = tunable.choices or ("0", "1")
    if asked.lower() in OFF_WORDS | {off.lower()}:
        return off
    if asked.lower() in ON_WORDS | {on.lower()}:
        return on
    raise RequestError(f"{tunable.name} = {asked!r} is neither on nor off; give 0 or 1")


def _choice(name: str, asked: str, choices: tuple[str, ...]) -> str:
    if asked.lower() in choices:
        return asked.lower()
    near = process.extractOne(asked.lower(), choices, score_cutoff=60)
    raise RequestError(
        f"{name} = {asked!r} is none of its choices: {', '.join(choices)}",
        hint=f"did you mean {near[0]}?" if near else None,
    )


def _cpus(tunable: Tunable, asked: str) -> str:
    cpus: set[int] = set()
    for part in asked.split(","):
        match = _CPU_RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise RequestError(f"{tunable.name} = {asked!r} is no list of CPUs; expected something like 0, 0,2 or 0-3")
        cpus.update(range(first, last + 1))
    ordered = sorted(cpus)
    starts = [cpu for cpu in ordered if cpu - 1 not in cpus]
    ends = [cpu for cpu in ordered if cpu + 1 not in cpus]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def _inside(value: int, minimum: int | None, maximum: int | None) -> bool:
    return (minimum is None or minimum <= value) and (maximum is None or value <= maximum)


def _range(tunable: Tunable) -> str:
    words = f"it is {tunable.minimum} … {tunable.maximum}{_in(tunable.unit)}"
    for value, meaning in tunable.special.items():
        words += f", or {value} ({meaning})"
    return words


def _in(unit: str) -> str:
    return f" {unit}" if unit else ""

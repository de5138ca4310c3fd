"""Levels: a value as a person gives it, checked against what a tunable or a workload's parameter can be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from ajuste.catalogue.servers import server_level
from ajuste.model.error import RequestError, did_you_mean, nearest_names
from ajuste.model.kernel import KernelVersion
from ajuste.model.topology import cpu_list, cpu_mask, parse_cpus, parse_mask
from ajuste.model.tunable import Tunable

if TYPE_CHECKING:
    from ajuste.model.workload import Parameter, WorkloadKind

# Quantities: a number with the unit that a person gave it, in the unit that a tunable counts in.


_QUANTITY = re.compile(r"([+-]?[0-9]{1,20}(?:\.[0-9]{1,18})?)\s*([^\s0-9.,;:+-][^\s,;:]{0,15})?", re.ASCII)

_TIMES = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "centisecs": Fraction(1, 100),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
}
# A letter alone is a power of 1024, as the kernel's own command line and cgroup files read it (lib/cmdline.c).
_SIZES = {
    **{f"{letter}iB": Fraction(1024**power) for power, letter in enumerate("KMGT", start=1)},
    **{letter: Fraction(1024**power) for power, letter in enumerate("KMGT", start=1)},
    **{f"{letter}B": Fraction(1000**power) for power, letter in enumerate("kMGT", start=1)},
    "B": Fraction(1),
    "bytes": Fraction(1),
    "k": Fraction(1024),
}

_FREQUENCIES = {"Hz": Fraction(1), "kHz": Fraction(10**3), "MHz": Fraction(10**6), "GHz": Fraction(10**9)}
_RATES = {f"{unit}/s": size for unit, size in _SIZES.items()}
# Of what is counted and has no unit that could be divided.
_COUNTS = {"k": Fraction(10**3), "M": Fraction(10**6)}

_COUNTED = frozenset({"", "packets", "pages", "requests", "sectors", "epochs"})
_DIMENSIONS = (_TIMES, _SIZES, _RATES, _FREQUENCIES)

OFF_WORDS = frozenset({"0", "off", "no", "n", "false", "disabled"})
ON_WORDS = frozenset({"1", "on", "yes", "y", "true", "enabled"})
_MASK = re.compile(r"0[xX][0-9a-fA-F]{1,256}|[0-9a-fA-F]{8}(,[0-9a-fA-F]{8}){0,31}")

# Names of files that mean nothing else to any program: fio, for one, takes a colon for the end of a name.
_FILE = re.compile(r"/?(?!-)[A-Za-z0-9_.+@-]{1,100}(/[A-Za-z0-9_.+@-]{1,100}){0,20}")


class WrongStep(ValueError):
    """The quantity lies between two values that the tunable can have."""


def whole_number(text: str, unit: str) -> int | None:
    """Return how many ``unit`` the quantity ``text`` is (``64MiB``, ``1.5ms``, ``20%``; a bare number is in ``unit``),
    ``None`` for what is no number or has another unit. Raises WrongStep for what is no whole number of ``unit``.
    """
    match = _QUANTITY.fullmatch(text)
    if not match:
        return None
    factor = _factor(match[2], unit)
    if factor is None:
        return None
    number = Fraction(match[1]) * factor
    if number.denominator == 1:
        return int(number)
    if match[2] is None:
        return None
    raise WrongStep


def real_number(text: str, unit: str) -> float | None:
    """Return any number as ``whole_number`` does."""
    match = _QUANTITY.fullmatch(text)
    factor = _factor(match[2], unit) if match else None
    return float(Fraction(match[1]) * factor) if match and factor is not None else None


def quantity_unit(text: str) -> str:
    """Return the unit of a quantity, empty for a bare number and for what is none."""
    match = _QUANTITY.fullmatch(text)
    return (match[2] or "") if match else ""


def step(unit: str) -> str:
    """Return one ``unit`` in words: ``10 ms`` for centisecs."""
    return "10 ms" if unit == "centisecs" else f"1 {unit}"


def _factor(source_unit: str | None, unit: str) -> Fraction | None:
    if source_unit is None or source_unit == unit:
        return Fraction(1)
    for dimension in _DIMENSIONS:
        if unit in dimension and source_unit in dimension:
            return dimension[source_unit] / dimension[unit]
    return _COUNTS.get(source_unit) if unit in _COUNTED else None


def check_level(tunable: Tunable, text: str, version: KernelVersion | None = None) -> str:
    """Return ``text`` as the kernel would show it: ``Y`` for ``on``, ``750000`` for ``0.75ms``, ``0-2`` for ``2,0,1``.
    With a ``version`` a choice must be one that such kernels offer. Raises RequestError that gives the valid values.
    """
    value = text.strip()
    match tunable.type:
        case "boolean":
            return _switch(tunable, value)
        case "cpu-list":
            return cpu_list(_cpus(tunable, value))
        case "cpu-mask":
            return cpu_mask(parse_mask(value) if _MASK.fullmatch(value) else _cpus(tunable, value))
        case "choice":
            if tunable.also and re.fullmatch(tunable.also, value):
                return value
            place = tunable.place_in(version) if version else None
            return _choice(tunable.name, value, (place.choices if place else ()) or tunable.choices)
        case "text":
            return server_level(tunable, value)
        case "integers":
            return _integers(tunable, value)
        case "integer":
            return _integer(tunable, value)


def check_parameter(name: str, parameter: Parameter, text: str) -> str:
    """Return ``text`` as a workload's parameter ``name`` has it. Raises RequestError that gives the valid values."""
    value = text.strip()
    if parameter.type == "flag":
        if value.lower() in ON_WORDS | OFF_WORDS:
            return "1" if value.lower() in ON_WORDS else "0"
        raise RequestError(f"{name} = {text!r}: expected 0 (off) or 1 (on)")
    if parameter.type == "choice":
        return _choice(name, value, tuple(parameter.choices))
    if parameter.type == "file":
        if _FILE.fullmatch(value):
            return value
        raise RequestError(f"{name} = {text!r}: expected a file name of letters, digits and . _ + @ - / only")
    limits = _limits(parameter.minimum, parameter.maximum, parameter.unit)
    number = _number(name, value, parameter.unit, limits)
    if not _inside(number, parameter.minimum, parameter.maximum):
        raise RequestError(f"{name} = {number} is out of range; expected {limits}")
    return str(number)


def _switch(tunable: Tunable, value: str) -> str:
    off, on = tunable.choices or ("0", "1")
    if value.lower() in OFF_WORDS | {off.lower()}:
        return off
    if value.lower() in ON_WORDS | {on.lower()}:
        return on
    raise RequestError(f"{tunable.name} = {value!r}: expected 0 (off) or 1 (on)")


def _choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value.lower() in choices:
        return value.lower()
    raise RequestError(
        f"{name} = {value!r}: expected one of {', '.join(choices)}",
        hint=did_you_mean(nearest_names(value.lower(), choices)),
    )


def _integer(tunable: Tunable, value: str) -> str:
    if value in tunable.special:
        return value
    number = _number(tunable.name, value, tunable.unit, _range(tunable))
    if str(number) not in tunable.special and not _inside(number, tunable.minimum, tunable.maximum):
        raise RequestError(f"{tunable.name} = {number} is out of range; expected {_range(tunable)}")
    return str(number)


def _number(name: str, value: str, unit: str, limits: str) -> int:
    try:
        number = whole_number(value, unit)
    except WrongStep:
        of_unit = f" of {unit}" if unit else ""
        raise RequestError(
            f"{name} = {value!r} is not a whole number{of_unit}; expected steps of {step(unit)}"
        ) from None
    if number is not None:
        return number
    if other_unit := quantity_unit(value):
        raise RequestError(
            f"{name} = {value!r}: {other_unit} is the wrong unit; expected {limits}", hint=_units(unit, other_unit)
        )
    raise RequestError(f"{name} = {value!r} is not a whole number; expected {limits}")


def _units(unit: str, other: str) -> str | None:
    # The units that `unit` can be given in, with the one that differs from `other` by its letters' case.
    dimension = next((dimension for dimension in _DIMENSIONS if unit in dimension), None)
    if dimension is None:
        return None
    same = [name for name in dimension if name.lower() == other.lower()]
    return did_you_mean(same) or f"write one of {', '.join(dimension)}, or a number of {unit}"


def _integers(tunable: Tunable, value: str) -> str:
    words = value.split()
    if not words or (tunable.count and len(words) != tunable.count):
        count = str(tunable.count) if tunable.count else "several"
        raise RequestError(f"{tunable.name} = {value!r}: expected {count} whole numbers, separated by blanks")
    return " ".join(_integer(tunable, word) for word in words)


def _cpus(tunable: Tunable, value: str) -> tuple[int, ...]:
    try:
        return parse_cpus(",".join(part.strip() for part in value.split(",")))
    except ValueError:
        raise RequestError(
            f"{tunable.name} = {value!r} is not a list of CPUs; expected a list such as 0, 0,2 or 0-3"
        ) from None


def _inside(value: int, minimum: int | None, maximum: int | None) -> bool:
    return (minimum is None or minimum <= value) and (maximum is None or value <= maximum)


def _range(tunable: Tunable) -> str:
    words = _limits(tunable.minimum, tunable.maximum, tunable.unit)
    for value, meaning in tunable.special.items():
        words += f", or {value} ({meaning})"
    return words


def _limits(minimum: int | None, maximum: int | None, unit: str) -> str:
    if minimum is not None and maximum is not None:
        return f"between {minimum} and {maximum}{_in(unit)}"
    if minimum is not None:
        return f"at least {minimum}{_in(unit)}"
    return f"up to {maximum}{_in(unit)}" if maximum is not None else "a whole number"


def _in(unit: str) -> str:
    return f" {unit}" if unit else ""


# How the parameters of a workload become the arguments of its program.


def check_parameters(kind: WorkloadKind, parameters: Mapping[str, str]) -> dict[str, str]:
    """Return all parameters of ``kind``: those of ``parameters``, checked, and the defaults of the others. Raises
    RequestError for an unknown parameter (with the nearest name) or an invalid value.
    """
    for name in parameters:
        if name not in kind.parameters:
            known = ", ".join(kind.parameters) or "none"
            raise RequestError(
                f"the workload {kind.name} has no parameter {name!r}; expected one of {known}",
                hint=did_you_mean(nearest_names(name, kind.parameters, likeness=50)),
            )
    return {
        name: check_parameter(f"{kind.name}'s {name}", parameter, parameters.get(name, parameter.default))
        for name, parameter in kind.parameters.items()
    }


def arguments(kind: WorkloadKind, parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Return the program's arguments (without the program) with ``parameters``; no shell ever reads them."""
    from ajuste.model.workload import PLACEHOLDER

    values = check_parameters(kind, parameters)
    words: list[str] = []
    for argument in kind.arguments:
        whole = PLACEHOLDER.fullmatch(argument)
        if whole and whole[1] in values and kind.parameters[whole[1]].choices:
            words += kind.parameters[whole[1]].choices[values[whole[1]]]
        else:
            words.append(PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), argument))  # or a {port}
    return tuple(words)


def modules(kind: WorkloadKind, parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Return the bundled kernel modules that the workload needs with ``parameters``, each once."""
    values = check_parameters(kind, parameters)
    needed = (kind.parameters[name].modules.get(value) for name, value in values.items())
    return tuple(dict.fromkeys(name for name in needed if name))

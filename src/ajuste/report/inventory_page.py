"""An inventory in words: areas of labelled lines, for the terminal and the HTML report alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ajuste.machine.inventory.inventory import Inventory
from ajuste.model.wording import count_of, sentence_start
from ajuste.report.document import Fact
from ajuste.report.format import level_text

_TITLES: Final = {
    "cpu": "CPU",
    "caches": "Caches",
    "numa": "NUMA",
    "frequency": "Frequency",
    "idle": "Idle states",
    "mitigations": "Mitigations",
    "kernel": "Kernel",
    "memory": "Memory",
    "disks": "Disks",
    "mounts": "Mounts",
    "nics": "Network interfaces",
    "virtualisation": "Virtualisation",
    "limits": "Limits",
    "software": "Software",
}
_UNITS: Final = {"bytes": "B", "kib": "KiB", "khz": "kHz", "us": "µs", "mbit_s": "Mbit/s"}
_SPELLINGS: Final = {
    "cpu": "CPU",
    "cpus": "CPUs",
    "smt": "SMT",
    "io": "I/O",
    "dax": "DAX",
    "mtu": "MTU",
    "pid": "PID",
    "qemu": "QEMU",
    "ajuste": "Ajuste",
    "lru": "LRU",
    "c": "C",
    "python": "Python",
}
_AS_NAMED: Final = frozenset({"nohz_full"})
_OF_THINGS: Final = frozenset({"caches", "numa", "disks", "mounts", "nics", "states"})
_COUNTED: Final = frozenset({"flags"})
# Values that most names of a long mapping have and few people look for: they come last, or are counted.
_QUIET: Final = frozenset({"n", "off, fixed", "Not affected"})


@dataclass(frozen=True)
class Area:
    """``facts`` are a line each; of several facts on one thing only the first has a name."""

    title: str
    facts: tuple[Fact, ...]


def inventory_page(inventory: Inventory) -> tuple[Area, ...]:
    """Return all areas in order, with texts as they were read; long lists (flags of the processor) are counted."""
    areas: dict[str, Any] = inventory.model_dump(mode="json", exclude={"inventory", "virtual_nics"})
    pages = {name: _things(value) if name in _OF_THINGS else _facts(value) for name, value in areas.items()}
    # A line for each mitigation; those with a value that few people look for together.
    quiet = [(value, names) for value, names in _by_value(inventory.mitigations) if value in _QUIET]
    pages["mitigations"] = [
        *(Fact(name, value) for name, value in inventory.mitigations.items() if value not in _QUIET),
        *(Fact(value, ", ".join(names)) for value, names in quiet),
    ] or [Fact("none", "", tone="dim")]
    pages["nics"].append(Fact("virtual", f"{inventory.virtual_nics} (bridges, tunnels, containers), not described"))
    return tuple(Area(area_title(name), tuple(lines)) for name, lines in pages.items())


def area_title(name: str) -> str:
    """Return the title of an area."""
    return _TITLES.get(name, _label(name))


def value_text(field: str, value: Any) -> str:
    """Return a value of ``field`` (the last part of a dotted path) in its unit."""
    unit = next((unit for suffix, unit in _UNITS.items() if field.endswith(f"_{suffix}")), "")
    if value is None:
        return "not there"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit == "kHz":
        return re.sub(r"[0-9]{4,12}", lambda match: f"{int(match[0]) / 1e6:g} GHz", str(value))
    if isinstance(value, int) and unit in ("B", "KiB"):
        return _size(value, unit)
    if isinstance(value, list | tuple):
        return " ".join(str(item) for item in value) or "none"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{text} {unit}".rstrip() if text else "none"


def _facts(mapping: Mapping[str, Any]) -> list[Fact]:
    lines: list[Fact] = []
    for name, value in _known(mapping):
        if name in _OF_THINGS:
            lines += _things(value)
        elif name in _COUNTED:
            lines.append(Fact(_label(name), f"{len(value)} (--json lists them)"))
        else:
            lines.append(Fact(_label(name), _mapping(value) if isinstance(value, Mapping) else value_text(name, value)))
    return [
        *lines,
        *(Fact(sentence_start(reason), names, tone="dim") for reason, names in _lacking(mapping)),
    ]


def _things(things: Mapping[str, Any]) -> list[Fact]:
    lines: list[Fact] = []
    for thing, mapping in things.items():
        known = _known(mapping)
        plain = [
            f"{_phrase(name)} {value_text(name, value)}" for name, value in known if not isinstance(value, Mapping)
        ]
        lines.append(Fact(thing, "; ".join(plain)))
        lines += [
            Fact("", f"{_phrase(name)}: {_mapping(value)}") for name, value in known if isinstance(value, Mapping)
        ]
        lines += [Fact("", f"{reason}: {names}", tone="dim") for reason, names in _lacking(mapping)]
    return lines or [Fact("none", "", tone="dim")]


def _known(mapping: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in mapping.items() if name != "unknown" and value is not None and value != {}]


def _lacking(mapping: Mapping[str, Any]) -> list[tuple[str, str]]:
    fields: dict[str, list[str]] = {}
    for name, reason in mapping.get("unknown", {}).items():
        fields.setdefault(str(reason), []).append(_phrase(name))
    return [(reason, ", ".join(names)) for reason, names in fields.items()]


def _mapping(mapping: Mapping[str, Any]) -> str:
    # A plain mapping: switches grouped by their values, with those that are off counted, else `name value`.
    values = [str(value) for value in mapping.values()]
    if set(values) & _QUIET and len(values) > 3 * len(set(values)):
        groups = ((value, names, value in _QUIET) for value, names in _by_value(mapping))
        return "; ".join(
            f"{value}: {count_of(len(names), 'other') if is_quiet else ', '.join(names)}"
            for value, names, is_quiet in groups
        )
    return ", ".join(f"{name} {value}".rstrip() for name, value in mapping.items())


def _by_value(mapping: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for name, value in mapping.items():
        groups.setdefault(str(value), []).append(name)
    return sorted(groups.items(), key=lambda group: group[0] in _QUIET)


def _label(name: str) -> str:
    # `read_ahead_bytes` is `Read ahead`; names of the kernel's own stay as they are.
    phrase = _phrase(name)
    return phrase if name in _AS_NAMED else sentence_start(phrase)


def _phrase(name: str) -> str:
    if name in _AS_NAMED or not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", name):
        return name
    unit = next((suffix for suffix in _UNITS if name.endswith(f"_{suffix}")), None)
    words = (name.removesuffix(f"_{unit}") if unit else name).split("_")
    return " ".join(_SPELLINGS.get(word, word) for word in words)


def _size(value: int, unit: str) -> str:
    # Whole numbers in the unit that suits them; anything else above 10,000 to a decimal.
    text = level_text(str(value), unit)
    if not text.endswith(f" {unit}") or value < 10_000:
        return text
    size = float(value) * (1024 if unit == "KiB" else 1)
    name, step = next(((name, step) for step, name in _STEPS if size >= step), (unit, 1))
    return f"{size / step:.1f} {name}"


_STEPS: Final = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))

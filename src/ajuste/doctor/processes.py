"""The processes of this machine and the CPU time that they have used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ajuste.inventory.source import Missing, Source

_STAT: Final = re.compile(
    r"\((?P<name>(?:.|\n)*)\) \S (?P<parent>-?\d+) (?:\S+ ){9}(?P<user>\d+) (?P<system>\d+) "
    r"(?P<children_user>\d+) (?P<children_system>\d+) (?:\S+ ){4}(?P<start>\d+)",
    re.ASCII,
)
"""proc_pid_stat(5): name (which can hold anything), parent, CPU times of itself and of its children, start."""


@dataclass(frozen=True)
class Process:
    """``ticks`` of its own, ``all_ticks`` with those of the children that it has waited for."""

    name: str
    parent: int
    ticks: int
    all_ticks: int


Snapshot = Mapping[tuple[int, int], Process]
"""By number and start: a number can be used again."""


def read_processes(source: Source) -> Snapshot:
    """All processes now. One that ends while it is read is left out."""
    found: dict[tuple[int, int], Process] = {}
    for name in source.names("/proc"):
        if not (name.isascii() and name.isdecimal()):
            continue
        text = source.text(f"/proc/{name}/stat")
        match = None if isinstance(text, Missing) else _STAT.search(text)
        if match:
            own = int(match["user"]) + int(match["system"])
            children = int(match["children_user"]) + int(match["children_system"])
            process = Process(match["name"], int(match["parent"]), own, own + children)
            found[int(name), int(match["start"])] = process
    return found


def family(snapshot: Snapshot, ancestor: int) -> set[tuple[int, int]]:
    """``ancestor`` and all its descendants."""
    children: dict[int, list[tuple[int, int]]] = {}
    for key, process in snapshot.items():
        children.setdefault(process.parent, []).append(key)
    found = {key for key in snapshot if key[0] == ancestor}
    waiting = list(found)
    while waiting:
        for child in children.get(waiting.pop()[0], []):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def family_ticks(snapshot: Snapshot, ancestor: int) -> int:
    """All CPU time of a process and its descendants, those that have ended among them."""
    return sum(snapshot[key].all_ticks for key in family(snapshot, ancestor))


def used_between(snapshots: Iterable[Snapshot], ancestor: int) -> dict[str, int]:
    """Ticks that others used from the first to the last of ``snapshots``, by name, the most first.

    What was not there in the first counts from its start. One that came and went between two looks is not seen.
    """
    first: Snapshot | None = None
    used: dict[tuple[int, int], tuple[str, int]] = {}
    ours: set[tuple[int, int]] = set()
    for snapshot in snapshots:
        first = snapshot if first is None else first
        ours |= family(snapshot, ancestor)
        for key, process in snapshot.items():
            before = first[key].ticks if key in first else 0
            used[key] = (process.name, max(0, process.ticks - before))
    sums: dict[str, int] = {}
    for key, (name, ticks) in used.items():
        if key not in ours and ticks:
            sums[name] = sums.get(name, 0) + ticks
    return dict(sorted(sums.items(), key=lambda entry: -entry[1]))

"""The processor's caches, as lscpu counts them."""

from __future__ import annotations

import re

from ajuste.inventory.cpu import online_cpus
from ajuste.inventory.cpu_list import cpus_in
from ajuste.inventory.published import free_name
from ajuste.inventory.section import Section
from ajuste.inventory.source import Source

_LETTERS = {"Data": "d", "Instruction": "i"}
_UNITS = {"K": 1, "M": 1024, "G": 1024 * 1024}


class Cache(Section):
    """All caches of one level, kind and size: ``instances`` of ``size_kib`` each, each for ``shared_by`` CPUs."""

    size_kib: int | None = None
    instances: int = 0
    shared_by: int = 0


def take_caches(source: Source) -> dict[str, Cache]:
    """By the names of lscpu(1): L1d, L1i, L2, L3; a second size of one level (of a hybrid processor) as ``L2 (2)``."""
    groups: dict[tuple[str, int | None, int], int] = {}
    covered: set[tuple[str, int]] = set()
    for cpu in online_cpus(source):
        place = f"/sys/devices/system/cpu/cpu{cpu}/cache"
        for index in source.names(place):
            if not re.fullmatch(r"index[0-9]{1,3}", index) or (index, cpu) in covered:
                continue
            shared = cpus_in(source.line(f"{place}/{index}/shared_cpu_list")) or [cpu]
            covered.update((index, other) for other in shared)
            level = source.line(f"{place}/{index}/level")
            if re.fullmatch(r"[0-9]{1,2}", level):
                kind = _LETTERS.get(source.line(f"{place}/{index}/type"), "")
                key = (f"L{level}{kind}", _kib(source.line(f"{place}/{index}/size")), len(shared))
                groups[key] = groups.get(key, 0) + 1
    found: dict[str, Cache] = {}
    for (name, size_kib, shared_by), instances in sorted(groups.items(), key=lambda group: group[0][0]):
        unknown = {} if size_kib is not None else {"size_kib": "not said by this processor"}
        cache = Cache(size_kib=size_kib, instances=instances, shared_by=shared_by, unknown=unknown)
        found[free_name(name, found)] = cache
    return found


def _kib(text: str) -> int | None:
    match = re.fullmatch(r"([0-9]{1,12})([KMG])", text)
    return int(match[1]) * _UNITS[match[2]] if match else None

"""Memory: how much, in what pages, and where it goes when there is too little."""

from __future__ import annotations

import os
import re

from pydantic import Field

from ajuste.machine.inventory.cpu import online_cpus
from ajuste.machine.inventory.source import (
    NOT_UNDERSTOOD,
    InventorySection,
    InventorySource,
    SourceReading,
    free_name,
    whole_number,
)
from ajuste.model.topology import cpu_list, cpus_said

_PAGES = "/sys/kernel/mm"


class Memory(InventorySection):
    """``huge_pages`` is how many are reserved, by their size. ``swaps`` has the sizes of swap areas by kind."""

    total_bytes: int | None = None
    page_bytes: int | None = None
    swap_bytes: int | None = None
    swaps: dict[str, str] = Field(default_factory=dict)
    zswap: bool | None = None
    transparent_huge_pages: str | None = None
    transparent_huge_pages_defrag: str | None = None
    transparent_huge_pages_shmem: str | None = None
    huge_pages: dict[str, int] = Field(default_factory=dict)
    same_page_merging: str | None = None
    multi_gen_lru: str | None = None


def take_memory(source: InventorySource) -> Memory:
    """From /proc/meminfo (proc(5)) and sysfs."""
    reading = SourceReading(source, absent="not offered by this kernel")
    pages = f"{_PAGES}/transparent_hugepage"
    lines = source.lines("/proc/meminfo")
    return Memory(
        total_bytes=_amount(reading, lines, "total_bytes", "MemTotal"),
        page_bytes=os.sysconf("SC_PAGE_SIZE"),
        swap_bytes=_amount(reading, lines, "swap_bytes", "SwapTotal"),
        swaps=_swaps(source),
        zswap=reading.switch("zswap", "/sys/module/zswap/parameters/enabled"),
        transparent_huge_pages=reading.choice("transparent_huge_pages", f"{pages}/enabled"),
        transparent_huge_pages_defrag=reading.choice("transparent_huge_pages_defrag", f"{pages}/defrag"),
        transparent_huge_pages_shmem=reading.choice("transparent_huge_pages_shmem", f"{pages}/shmem_enabled"),
        huge_pages=_huge_pages(source),
        same_page_merging=_same_page_merging(reading),
        multi_gen_lru=reading.text("multi_gen_lru", f"{_PAGES}/lru_gen/enabled"),
        unknown=reading.unknown,
    )


def _amount(reading: SourceReading, lines: list[str], field: str, name: str) -> int | None:
    for line in lines:
        match = re.fullmatch(rf"{name}:\s*([0-9]{{1,15}}) kB", line)
        if match:
            return int(match[1]) * 1024
    return reading.lacks(field, NOT_UNDERSTOOD)


def _swaps(source: InventorySource) -> dict[str, str]:
    """Without the names of the files and partitions."""
    found: dict[str, str] = {}
    for line in source.lines("/proc/swaps")[1:]:
        match = re.search(r"\s(partition|file)\s+([0-9]{1,15})\s+[0-9]+\s+(-?[0-9]{1,6})$", line)
        if match:
            kind = "zram" if line.startswith("/dev/zram") else match[1]
            said = f"{int(match[2]) >> 10} MiB, priority {match[3]}"
            found[kind] = f"{found[kind]}; {said}" if kind in found else said
    return found


def _huge_pages(source: InventorySource) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in source.names(f"{_PAGES}/hugepages"):
        match = re.fullmatch(r"hugepages-([0-9]{1,12})kB", name)
        reserved = source.whole(f"{_PAGES}/hugepages/{name}/nr_hugepages")
        if match and reserved is not None:
            kib = int(match[1])
            found[f"{kib >> 20} GiB" if kib >= 1 << 20 else f"{kib >> 10} MiB" if kib >= 1024 else f"{kib} KiB"] = (
                reserved
            )
    return found


def _same_page_merging(reading: SourceReading) -> str | None:
    run = reading.text("same_page_merging", f"{_PAGES}/ksm/run")
    return None if run is None else {"0": "off", "1": "on", "2": "off, all unmerged"}.get(run, run)


# NUMA nodes, as ``numactl --hardware`` shows them.


_NODES = "/sys/devices/system/node"


class NumaNode(InventorySection):
    """``cpus`` as a list, ``distances`` to all nodes in their order (10 is local; ACPI's SLIT)."""

    cpus: str = ""
    memory_bytes: int | None = None
    distances: tuple[int, ...] = ()


def take_nodes(source: InventorySource) -> dict[str, NumaNode]:
    """By the kernel's names: node0, node1 … Empty for a kernel without NUMA."""
    return {name: _node(source, name) for name in source.names(_NODES) if re.fullmatch(r"node[0-9]{1,4}", name)}


def _node(source: InventorySource, name: str) -> NumaNode:
    total = (re.search(r"MemTotal:\s*([0-9]{1,18}) kB", line) for line in source.lines(f"{_NODES}/{name}/meminfo"))
    found = next((match for match in total if match), None)
    distances = [whole_number(word) for word in source.line(f"{_NODES}/{name}/distance").split()]
    return NumaNode(
        cpus=cpu_list(cpus_said(source.line(f"{_NODES}/{name}/cpulist"))),
        memory_bytes=int(found[1]) * 1024 if found else None,
        distances=tuple(distance for distance in distances if distance is not None),
        unknown={} if found else {"memory_bytes": NOT_UNDERSTOOD},
    )


# The processor's caches, as lscpu counts them.


_LETTERS = {"Data": "d", "Instruction": "i"}
_UNITS = {"K": 1, "M": 1024, "G": 1024 * 1024}


class Cache(InventorySection):
    """All caches of one level, kind and size: ``instances`` of ``size_kib`` each, each for ``shared_by`` CPUs."""

    size_kib: int | None = None
    instances: int = 0
    shared_by: int = 0


def take_caches(source: InventorySource) -> dict[str, Cache]:
    """By the names of lscpu(1): L1d, L1i, L2, L3; a second size of one level (of a hybrid processor) as ``L2 (2)``."""
    groups: dict[tuple[str, int | None, int], int] = {}
    covered: set[tuple[str, int]] = set()
    for cpu in online_cpus(source):
        place = f"/sys/devices/system/cpu/cpu{cpu}/cache"
        for index in source.names(place):
            if not re.fullmatch(r"index[0-9]{1,3}", index) or (index, cpu) in covered:
                continue
            shared = cpus_said(source.line(f"{place}/{index}/shared_cpu_list")) or [cpu]
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

"""Memory: how much, in what pages, and where it goes when there is too little."""

from __future__ import annotations

import os
import re

from pydantic import Field

from ajuste.inventory.section import Section
from ajuste.inventory.source import NOT_UNDERSTOOD, Reading, Source

_PAGES = "/sys/kernel/mm"


class Memory(Section):
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


def take_memory(source: Source) -> Memory:
    """From /proc/meminfo (proc(5)) and sysfs."""
    reading = Reading(source, absent="not offered by this kernel")
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


def _amount(reading: Reading, lines: list[str], field: str, name: str) -> int | None:
    for line in lines:
        match = re.fullmatch(rf"{name}:\s*([0-9]{{1,15}}) kB", line)
        if match:
            return int(match[1]) * 1024
    return reading.lacks(field, NOT_UNDERSTOOD)


def _swaps(source: Source) -> dict[str, str]:
    """Without the names of the files and partitions."""
    found: dict[str, str] = {}
    for line in source.lines("/proc/swaps")[1:]:
        match = re.search(r"\s(partition|file)\s+([0-9]{1,15})\s+[0-9]+\s+(-?[0-9]{1,6})$", line)
        if match:
            kind = "zram" if line.startswith("/dev/zram") else match[1]
            said = f"{int(match[2]) >> 10} MiB, priority {match[3]}"
            found[kind] = f"{found[kind]}; {said}" if kind in found else said
    return found


def _huge_pages(source: Source) -> dict[str, int]:
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


def _same_page_merging(reading: Reading) -> str | None:
    run = reading.text("same_page_merging", f"{_PAGES}/ksm/run")
    return None if run is None else {"0": "off", "1": "on", "2": "off, all unmerged"}.get(run, run)

"""Processor and memory: CPUs, cores, sockets, frequencies, idle states, caches, nodes and pages."""

from __future__ import annotations

import os
import re

from pydantic import Field

from ajuste.machine.inventory.source import (
    NOT_THERE,
    NOT_UNDERSTOOD,
    InventorySection,
    InventorySource,
    SourceReading,
    free_name,
    whole_number,
)
from ajuste.model.topology import cpu_list, parse_kernel_cpus

_CPUS = "/sys/devices/system/cpu"

_CPUFREQ = "/sys/devices/system/cpu/cpufreq"
_PSTATE = "/sys/devices/system/cpu/intel_pstate"
_HIDDEN = "not visible here: no cpufreq driver"

_FILES = {
    "driver": "scaling_driver",
    "governor": "scaling_governor",
    "governors_offered": "scaling_available_governors",
    "energy_preference": "energy_performance_preference",
    "lowest_khz": "scaling_min_freq",
    "highest_khz": "scaling_max_freq",
    "hardware_lowest_khz": "cpuinfo_min_freq",
    "hardware_highest_khz": "cpuinfo_max_freq",
    "base_khz": "base_frequency",
}

_CPUIDLE = "/sys/devices/system/cpu/cpuidle"
_STATES = "/sys/devices/system/cpu/cpu0/cpuidle"
_PAGES = "/sys/kernel/mm"
_NODES = "/sys/devices/system/node"
_LETTERS = {"Data": "d", "Instruction": "i"}
_UNITS = {"K": 1, "M": 1024, "G": 1024 * 1024}


class Cpu(InventorySection):
    """``online``, ``offline``, ``isolated`` and ``nohz_full`` are lists of CPUs as the kernel writes them; empty where
    there are none. ``smt`` is the kernel's word: on, off, forceoff, notsupported, notimplemented.
    """

    model: str | None = None
    vendor: str | None = None
    family: int | None = None
    model_number: int | None = None
    stepping: int | None = None
    microcode: str | None = None
    cpus: int | None = None
    sockets: int | None = None
    cores: int | None = None
    threads_per_core: int | None = None
    smt: str | None = None
    online: str | None = None
    offline: str | None = None
    isolated: str | None = None
    nohz_full: str | None = None
    flags: tuple[str, ...] = ()


def take_cpu(source: InventorySource) -> Cpu:
    """Read /proc/cpuinfo (proc(5)) and the topology in sysfs (Documentation/admin-guide/cputopology.rst)."""
    reading = SourceReading(source, absent="not offered by this kernel")
    fields = _first_processor(source)

    def number(field: str, key: str) -> int | None:
        value = whole_number(fields.get(key, ""))
        return reading.lacks(field, "not reported by this processor") if value is None else value

    def word(field: str, *keys: str) -> str | None:
        value = next((fields[key] for key in keys if fields.get(key)), None)
        return reading.lacks(field, "not reported by this processor") if value is None else value

    online = online_cpus(source)
    cores, sockets = _topology(source, online)
    return Cpu(
        model=word("model", "model name", "Processor", "cpu model", "uarch", "machine"),
        vendor=word("vendor", "vendor_id", "CPU implementer"),
        family=number("family", "cpu family"),
        model_number=number("model_number", "model"),
        stepping=number("stepping", "stepping"),
        microcode=word("microcode", "microcode"),
        cpus=len(online) or reading.lacks("cpus", NOT_THERE),
        sockets=sockets or reading.lacks("sockets", "not offered by this kernel"),
        cores=cores or reading.lacks("cores", "not offered by this kernel"),
        threads_per_core=-(-len(online) // cores) if cores else reading.lacks("threads_per_core", NOT_THERE),
        smt=reading.text("smt", f"{_CPUS}/smt/control"),
        online=cpu_list(online),
        offline=_listed(source, reading, "offline"),
        isolated=_listed(source, reading, "isolated"),
        nohz_full=_listed(source, reading, "nohz_full"),
        flags=tuple(sorted((fields.get("flags") or fields.get("Features") or "").split())),
        unknown=reading.unknown,
    )


def online_cpus(source: InventorySource) -> list[int]:
    """Return the numbers of the CPUs in use."""
    listed = parse_kernel_cpus(source.line(f"{_CPUS}/online"))
    if listed:
        return listed
    numbers = (whole_number(name.removeprefix("cpu")) for name in source.names(_CPUS) if name.startswith("cpu"))
    return [number for number in numbers if number is not None]


def _first_processor(source: InventorySource) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in source.lines("/proc/cpuinfo"):
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip(), value.strip())
    return fields


def _topology(source: InventorySource, online: list[int]) -> tuple[int, int]:
    cores: set[tuple[int, ...]] = set()
    sockets: set[str] = set()
    covered: set[int] = set()
    for cpu in online:
        if cpu in covered:
            continue
        place = f"{_CPUS}/cpu{cpu}/topology"
        siblings = parse_kernel_cpus(source.line(f"{place}/thread_siblings_list"))
        if not siblings:
            return 0, 0
        covered.update(siblings)
        cores.add(tuple(siblings))
        sockets.add(source.line(f"{place}/physical_package_id"))
    return len(cores), len(sockets)


def _listed(source: InventorySource, reading: SourceReading, name: str) -> str | None:
    # A list of CPUs, in the kernel's way of writing; the kernel says `(null)` for none in some versions.
    path = f"{_CPUS}/{name}"
    if not source.is_there(path):
        return reading.lacks(name, "not offered by this kernel")
    return cpu_list(parse_kernel_cpus(source.line(path)))


# How fast the CPUs may run and who decides it: cpufreq's driver and governor, turbo.


class Frequency(InventorySection):
    """The frequencies of the CPUs; where CPUs differ, a text such as ``performance (0-3), powersave (4-7)``.

    ``lowest_khz`` … ``highest_khz`` is what the limits allow now, ``hardware_…`` what the processor can do.
    """

    driver: str | None = None
    governor: str | None = None
    governors_offered: str | None = None
    energy_preference: str | None = None
    lowest_khz: str | None = None
    highest_khz: str | None = None
    hardware_lowest_khz: str | None = None
    hardware_highest_khz: str | None = None
    base_khz: str | None = None
    turbo: bool | None = None
    pstate_mode: str | None = None


def take_frequency(source: InventorySource) -> Frequency:
    """Read frequencies. Source: Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst."""
    policies = [name for name in source.names(_CPUFREQ) if name.startswith("policy")]
    reading = SourceReading(source, absent="not offered by this driver" if policies else _HIDDEN)
    words = {field: _together(source, reading, policies, field, name) for field, name in _FILES.items()}
    if source.is_there(f"{_PSTATE}/no_turbo"):
        stopped = reading.switch("turbo", f"{_PSTATE}/no_turbo")
        turbo = None if stopped is None else not stopped
    else:
        turbo = reading.switch("turbo", f"{_CPUFREQ}/boost")
    return Frequency(
        **words,
        turbo=turbo,
        pstate_mode=reading.text("pstate_mode", f"{_PSTATE}/status")
        or reading.text("pstate_mode", "/sys/devices/system/cpu/amd_pstate/status"),
        unknown={name: why for name, why in reading.unknown.items() if words.get(name) is None},
    )


def _together(
    source: InventorySource, reading: SourceReading, policies: list[str], field: str, name: str
) -> str | None:
    if not policies:
        return reading.lacks(field, _HIDDEN)
    values: dict[str, list[int]] = {}
    for policy in policies:
        value = reading.text(field, f"{_CPUFREQ}/{policy}/{name}")
        if value is not None:
            cpus = parse_kernel_cpus(source.line(f"{_CPUFREQ}/{policy}/affected_cpus").replace(" ", ","))
            values.setdefault(value, []).extend(cpus)
    if len(values) < 2:
        return next(iter(values), None)
    return ", ".join(f"{value} ({cpu_list(cpus)})" for value, cpus in values.items())


# Idle states: how deeply CPUs sleep, and how long they take to wake.


class IdleState(InventorySection):
    """``disabled`` by a person or a program, through sysfs or a PM QoS request of its own."""

    exit_latency_us: int | None = None
    target_residency_us: int | None = None
    disabled: bool | None = None


class Idle(InventorySection):
    """The idle states of CPU 0; all CPUs of most machines are alike."""

    driver: str | None = None
    governor: str | None = None
    states: dict[str, IdleState] = Field(default_factory=dict)


def take_idle(source: InventorySource) -> Idle:
    """Read idle states. Source: Documentation/admin-guide/pm/cpuidle.rst."""
    reading = SourceReading(source, absent="not offered by this kernel")
    states: dict[str, IdleState] = {}
    for number in source.names(_STATES):
        if number.startswith("state"):
            name = source.line(f"{_STATES}/{number}/name") or number
            states[name if name not in states else f"{name} ({number})"] = _state(source, f"{_STATES}/{number}")
    governor = "current_governor_ro" if source.is_there(f"{_CPUIDLE}/current_governor_ro") else "current_governor"
    return Idle(
        driver=reading.text("driver", f"{_CPUIDLE}/current_driver"),
        governor=reading.text("governor", f"{_CPUIDLE}/{governor}"),
        states=states,
        unknown=reading.unknown,
    )


def _state(source: InventorySource, place: str) -> IdleState:
    reading = SourceReading(source, absent="not offered by this driver")
    return IdleState(
        exit_latency_us=reading.whole("exit_latency_us", f"{place}/latency"),
        target_residency_us=reading.whole("target_residency_us", f"{place}/residency"),
        disabled=reading.switch("disabled", f"{place}/disable"),
        unknown=reading.unknown,
    )


# Memory: how much, in what pages, and where it goes when there is too little.


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
    """Read /proc/meminfo (proc(5)) and sysfs."""
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
    swaps: dict[str, str] = {}
    for line in source.lines("/proc/swaps")[1:]:
        match = re.search(r"\s(partition|file)\s+([0-9]{1,15})\s+[0-9]+\s+(-?[0-9]{1,6})$", line)
        if match:
            kind = "zram" if line.startswith("/dev/zram") else match[1]
            description = f"{int(match[2]) >> 10} MiB, priority {match[3]}"
            swaps[kind] = f"{swaps[kind]}; {description}" if kind in swaps else description
    return swaps


def _huge_pages(source: InventorySource) -> dict[str, int]:
    pools: dict[str, int] = {}
    for name in source.names(f"{_PAGES}/hugepages"):
        match = re.fullmatch(r"hugepages-([0-9]{1,12})kB", name)
        reserved = source.whole(f"{_PAGES}/hugepages/{name}/nr_hugepages")
        if match and reserved is not None:
            kib = int(match[1])
            pools[f"{kib >> 20} GiB" if kib >= 1 << 20 else f"{kib >> 10} MiB" if kib >= 1024 else f"{kib} KiB"] = (
                reserved
            )
    return pools


def _same_page_merging(reading: SourceReading) -> str | None:
    run = reading.text("same_page_merging", f"{_PAGES}/ksm/run")
    return None if run is None else {"0": "off", "1": "on", "2": "off, all unmerged"}.get(run, run)


# NUMA nodes, as ``numactl --hardware`` shows them.


class NumaNode(InventorySection):
    """``cpus`` as a list, ``distances`` to all nodes in their order (10 is local; ACPI's SLIT)."""

    cpus: str = ""
    memory_bytes: int | None = None
    distances: tuple[int, ...] = ()


def take_nodes(source: InventorySource) -> dict[str, NumaNode]:
    """Read nodes by the kernel's names: node0, node1 … Empty for a kernel without NUMA."""
    return {name: _node(source, name) for name in source.names(_NODES) if re.fullmatch(r"node[0-9]{1,4}", name)}


def _node(source: InventorySource, name: str) -> NumaNode:
    total = (re.search(r"MemTotal:\s*([0-9]{1,18}) kB", line) for line in source.lines(f"{_NODES}/{name}/meminfo"))
    match_of_total = next((match for match in total if match), None)
    distances = [whole_number(word) for word in source.line(f"{_NODES}/{name}/distance").split()]
    return NumaNode(
        cpus=cpu_list(parse_kernel_cpus(source.line(f"{_NODES}/{name}/cpulist"))),
        memory_bytes=int(match_of_total[1]) * 1024 if match_of_total else None,
        distances=tuple(distance for distance in distances if distance is not None),
        unknown={} if match_of_total else {"memory_bytes": NOT_UNDERSTOOD},
    )


# The processor's caches, as lscpu counts them.


class Cache(InventorySection):
    """The caches of one level, kind and size: ``instances`` of ``size_kib`` each, each for ``shared_by`` CPUs."""

    size_kib: int | None = None
    instances: int = 0
    shared_by: int = 0


def take_caches(source: InventorySource) -> dict[str, Cache]:
    """Read caches by the names of lscpu(1): L1d, L1i, L2, L3; a second size of one level as ``L2 (2)``."""
    groups: dict[tuple[str, int | None, int], int] = {}
    covered: set[tuple[str, int]] = set()
    for cpu in online_cpus(source):
        place = f"/sys/devices/system/cpu/cpu{cpu}/cache"
        for index in source.names(place):
            if not re.fullmatch(r"index[0-9]{1,3}", index) or (index, cpu) in covered:
                continue
            shared = parse_kernel_cpus(source.line(f"{place}/{index}/shared_cpu_list")) or [cpu]
            covered.update((index, other) for other in shared)
            level = source.line(f"{place}/{index}/level")
            if re.fullmatch(r"[0-9]{1,2}", level):
                kind = _LETTERS.get(source.line(f"{place}/{index}/type"), "")
                size = re.fullmatch(r"([0-9]{1,12})([KMG])", source.line(f"{place}/{index}/size"))
                key = (f"L{level}{kind}", int(size[1]) * _UNITS[size[2]] if size else None, len(shared))
                groups[key] = groups.get(key, 0) + 1
    caches: dict[str, Cache] = {}
    for (name, size_kib, shared_by), instances in sorted(groups.items(), key=lambda group: group[0][0]):
        unknown = {} if size_kib is not None else {"size_kib": "not reported by this processor"}
        cache = Cache(size_kib=size_kib, instances=instances, shared_by=shared_by, unknown=unknown)
        caches[free_name(name, caches)] = cache
    return caches

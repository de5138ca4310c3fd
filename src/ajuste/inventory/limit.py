"""Limits that are in force for what we start: of the process, of its cgroups, of the system."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import Field

from ajuste.inventory.section import Section
from ajuste.inventory.source import NOT_UNDERSTOOD, Reading, Source

_CGROUP = "/sys/fs/cgroup"
_UNITS = ("bytes", "seconds", "us")
_RESOURCE = re.compile(r"Max ([a-z ]{1,40}?)\s+(unlimited|[0-9]{1,20})\s+(unlimited|[0-9]{1,20})(\s+\w+)?\s*")


class Limits(Section):
    """``resources`` are soft and hard limits as in /proc/self/limits. Those of cgroups are the tightest from our own
    group up to the root: ``cpu_limit`` in CPUs, ``cpu_weight`` of our own group.
    """

    allowed_cpus: str | None = None
    cgroup_version: str | None = None
    cpu_limit: float | None = None
    cpu_weight: int | None = None
    memory_limit_bytes: int | None = None
    process_limit: int | None = None
    pid_max: int | None = None
    threads_max: int | None = None
    resources: dict[str, str] = Field(default_factory=dict)


def take_limits(source: Source) -> Limits:
    """From proc_pid_limits(5) and Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/."""
    reading = Reading(source, absent="not offered by this kernel")
    version, groups = _groups(source)
    v2 = version == "2"
    memory = "memory.max" if v2 else "memory.limit_in_bytes"
    return Limits(
        allowed_cpus=_allowed(source, reading),
        cgroup_version=version or reading.lacks("cgroup_version", "no cgroups are mounted"),
        cpu_limit=_cpu_limit(source, groups, v2) or reading.lacks("cpu_limit", "no limit"),
        cpu_weight=_cpu_weight(source, groups, v2) or reading.lacks("cpu_weight", "no group of its own"),
        memory_limit_bytes=_least(source, groups, "memory", memory) or reading.lacks("memory_limit_bytes", "no limit"),
        process_limit=_least(source, groups, "pids", "pids.max") or reading.lacks("process_limit", "no limit"),
        pid_max=reading.whole("pid_max", "/proc/sys/kernel/pid_max"),
        threads_max=reading.whole("threads_max", "/proc/sys/kernel/threads-max"),
        resources=_resources(source),
        unknown=reading.unknown,
    )


def _allowed(source: Source, reading: Reading) -> str | None:
    for line in source.lines("/proc/self/status"):
        match = re.fullmatch(r"Cpus_allowed_list:\s*([0-9,-]{1,4096})", line)
        if match:
            return match[1]
    return reading.lacks("allowed_cpus", NOT_UNDERSTOOD)


def _resources(source: Source) -> dict[str, str]:
    """``soft, hard`` by the kernel's names, e.g. ``Max open files``; one figure where they are the same."""
    found: dict[str, str] = {}
    for line in source.lines("/proc/self/limits")[1:]:
        match = re.fullmatch(
            r"Max ([a-z ]{1,40}?)\s+(unlimited|[0-9]{1,20})\s+(unlimited|[0-9]{1,20})(\s+\w+)?\s*", line
        )
        if match:
            unit, soft, hard = (match[4] or "").strip(), match[2], match[3]
            amount = f"{soft} {unit}" if unit in _UNITS and soft != "unlimited" else soft
            found[match[1]] = amount if soft == hard else f"{amount} (at most {hard})"
    return found


def _groups(source: Source) -> tuple[str, dict[str, str]]:
    """The version in use, and our group's directory for each controller (version 1) or for all (``""``, version 2)."""
    groups: dict[str, str] = {}
    for line in source.lines("/proc/self/cgroup"):
        parts = line.split(":", 2)
        if len(parts) == 3 and ".." not in parts[2].split("/"):
            for controller in parts[1].split(","):
                groups[controller] = parts[2].rstrip("/")
    if source.is_there(f"{_CGROUP}/cgroup.controllers"):
        return "2", {"": groups.get("", "")}
    mounted = {name: path for name, path in groups.items() if name and source.is_there(f"{_CGROUP}/{name}")}
    if not mounted:
        return "", {}
    return ("1 and 2" if source.is_there(f"{_CGROUP}/unified/cgroup.controllers") else "1"), mounted


def _upwards(groups: dict[str, str], controller: str) -> Iterator[str]:
    """Our group's directory for ``controller`` and all above it."""
    own = groups.get("", groups.get(controller))
    if own is None:
        return
    top = _CGROUP if "" in groups else f"{_CGROUP}/{controller}"
    while own:
        yield top + own
        own = own.rpartition("/")[0]
    yield top


def _least(source: Source, groups: dict[str, str], controller: str, name: str) -> int | None:
    """The smallest number that any of the groups has. Version 1 writes "no limit" as a number near 2⁶³."""
    found = [source.whole(f"{place}/{name}") for place in _upwards(groups, controller)]
    return min((value for value in found if value is not None and 0 < value < 1 << 62), default=None)


def _cpu_limit(source: Source, groups: dict[str, str], v2: bool) -> float | None:
    shares: list[float] = []
    for place in _upwards(groups, "cpu"):
        if v2:
            quota, _, period = source.line(f"{place}/cpu.max").partition(" ")
        else:
            quota, period = source.line(f"{place}/cpu.cfs_quota_us"), source.line(f"{place}/cpu.cfs_period_us")
        if re.fullmatch(r"[1-9][0-9]{0,14}", quota) and re.fullmatch(r"[1-9][0-9]{0,14}", period):
            shares.append(int(quota) / int(period))
    return min(shares, default=None)


def _cpu_weight(source: Source, groups: dict[str, str], v2: bool) -> int | None:
    own = next(_upwards(groups, "cpu"), "")
    return source.whole(f"{own}/{'cpu.weight' if v2 else 'cpu.shares'}") if own else None

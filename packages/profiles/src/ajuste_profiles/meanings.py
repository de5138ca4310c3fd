"""Meanings of a profile's lines: which tunables of the catalogue each sets, or why none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from ajuste.catalogue.loader import Catalogue
from ajuste.catalogue.place import sysctl_path
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import Tunable
from ajuste.study.profile import Profile, ProfileLine, Unmapped

OPTIONS: Final[Mapping[tuple[str, str], str]] = {
    ("vm", "transparent_hugepages"): "thp.enabled",
    ("vm", "transparent_hugepage"): "thp.enabled",
    ("vm", "transparent_hugepage.defrag"): "thp.defrag",
    ("vm", "dirty_bytes"): "vm.dirty_bytes",
    ("vm", "dirty_ratio"): "vm.dirty_ratio",
    ("vm", "dirty_background_bytes"): "vm.dirty_background_bytes",
    ("vm", "dirty_background_ratio"): "vm.dirty_background_ratio",
    ("cpu", "governor"): "cpu.governor",
    ("cpu", "energy_perf_bias"): "cpu.energy_perf_bias",
    ("cpu", "energy_performance_preference"): "cpu.epp",
    ("cpu", "min_perf_pct"): "cpu.min_perf_pct",
    ("cpu", "max_perf_pct"): "cpu.max_perf_pct",
    ("cpu", "no_turbo"): "cpu.no_turbo",
    ("cpu", "boost"): "cpu.boost",
    ("cpu", "force_latency"): "cpu.dma_latency_us",
    ("disk", "elevator"): "block.scheduler",
    ("disk", "readahead"): "block.read_ahead_kb",
    ("disk", "readahead_multiply"): "block.read_ahead_kb",
    ("scheduler", "sched_min_granularity_ns"): "sched_min_granularity_ns",
    ("scheduler", "sched_latency_ns"): "sched_latency_ns",
    ("scheduler", "sched_wakeup_granularity_ns"): "sched_wakeup_granularity_ns",
    ("scheduler", "sched_tunable_scaling"): "sched_tunable_scaling",
    ("scheduler", "sched_migration_cost_ns"): "sched_migration_cost_ns",
    ("scheduler", "sched_nr_migrate"): "sched_nr_migrate",
    ("scheduler", "sched_base_slice_ns"): "base_slice_ns",
    ("scheduler", "numa_balancing_scan_delay_ms"): "numa_balancing_scan_delay_ms",
    ("scheduler", "numa_balancing_scan_period_min_ms"): "numa_balancing_scan_period_min_ms",
    ("scheduler", "numa_balancing_scan_period_max_ms"): "numa_balancing_scan_period_max_ms",
    ("scheduler", "numa_balancing_scan_size_mb"): "numa_balancing_scan_size_mb",
    ("net", "mtu"): "net.mtu",
    ("net", "txqueuelen"): "net.tx_queue_len",
}
"""The tunables by tuned's plug-in and its option. The plug-ins sysctl and sysfs name a place of the kernel instead, and
options of ``net`` in ``PAIRED`` have several settings in one line."""

PAIRED: Final = ("features", "coalesce", "ring")
"""Options of tuned's plug-in ``net`` whose value is words in pairs: ``tso off gro on``."""

_KINDS: Final = {"features": "feature", "coalesce": "coalesce", "ring": "ring"}

# Features of a network interface as ethtool(8) calls them, where the kernel has other names.
_FEATURES: Final = {
    "tso": "net.tso",
    "gso": "net.gso",
    "generic-segmentation-offload": "net.gso",
    "gro": "net.gro",
    "generic-receive-offload": "net.gro",
    "lro": "net.lro",
    "large-receive-offload": "net.lro",
    "sg": "net.sg",
    "tx": "net.tx-checksum",
    "rx": "net.rx-checksum",
    "rx-checksumming": "net.rx-checksum",
    "txvlan": "net.tx-vlan",
    "tx-vlan-offload": "net.tx-vlan",
    "rxvlan": "net.rx-vlan",
    "rx-vlan-offload": "net.rx-vlan",
    "ntuple": "net.ntuple",
    "ntuple-filters": "net.ntuple",
    "rxhash": "net.rx-hashing",
    "receive-hashing": "net.rx-hashing",
}


NOT_SETTINGS: Final[Mapping[str, str]] = {
    "acpi": "is a power scheme of the firmware",
    "audio": "is a setting of a sound driver's module",
    "bootloader": "is a kernel argument, which requires a boot: see kernel_arguments of a study",
    "eeepc_she": "is a firmware setting of one laptop model",
    "irq": "sets the CPUs of single interrupts",
    "irqbalance": "is the configuration of irqbalance",
    "modules": "is a kernel module with its parameters",
    "mounts": "is an option of file systems that are mounted",
    "rtentsk": "is a socket that tuned holds open",
    "script": "is a program; Ajuste runs no program of a profile",
    "scsi_host": "is the power management of a disk controller",
    "selinux": "is a setting of SELinux",
    "service": "is a service of the system",
    "systemd": "is the configuration of systemd",
    "uncore": "is the frequency of the processor's uncore",
    "usb": "is the power management of USB devices",
    "video": "is a setting of a graphics driver",
}
"""tuned's plug-ins that are no settings of the running kernel which could be changed and put back for each trial."""


PLUGINS: Final = ("cpu", "disk", "net", "scheduler", "sysctl", "sysfs", "vm", *NOT_SETTINGS)
"""The plug-ins of tuned."""

ENERGY_BIAS: Final[Mapping[str, str]] = {
    "performance": "0",
    "balance-performance": "4",
    "normal": "6",
    "balance-power": "8",
    "power": "15",
    "powersave": "15",
}
"""The words for cpu.energy_perf_bias (x86_energy_perf_policy(8)), whose file is read as a number."""


def paired_tunable(option: str, word: str, tunables: Mapping[str, Tunable]) -> str | None:
    """Return the tunable that ``word`` of one of the ``PAIRED`` options means."""
    kind = _KINDS[option]
    if option == "features" and word in _FEATURES:
        return _FEATURES[word]
    for tunable in tunables.values():
        if any(where.kind == kind and where.attribute == word for where in tunable.where):
            return tunable.name
    return None


# Block devices that tuned leaves alone.
_NO_DISK: Final = re.compile(r"(dm-|fd|loop|md|nbd|ram|sr|zram)\d")

Instances = Callable[[Tunable], Sequence[str]]
"""A function from a tunable to its instances on the machine: ``sda``, ``cpu0``."""


@dataclass(frozen=True)
class Wish:
    """A tunable that ``line`` sets, with what it says of the value."""

    line: ProfileLine
    tunable: Tunable
    text: str


def wishes(
    profile: Profile, catalogue: Catalogue, version: KernelVersion, instances: Instances
) -> tuple[list[Wish], list[Unmapped]]:
    """Return the tunables of a kernel of ``version`` that the lines mean, and the lines that mean none."""
    wanted: list[Wish] = []
    unmapped: list[Unmapped] = []
    for line in profile.lines:
        try:
            wanted += _of_line(line, catalogue, version, instances)
        except LeftOutError as left:
            unmapped.append(Unmapped(line, str(left)))
    return wanted, unmapped


class LeftOutError(Exception):
    """The reason why a line is left out."""


def _of_line(line: ProfileLine, catalogue: Catalogue, version: KernelVersion, instances: Instances) -> Iterator[Wish]:
    if line.unless:
        raise LeftOutError(line.unless)
    if line.plugin in NOT_SETTINGS:
        raise LeftOutError(NOT_SETTINGS[line.plugin])
    if line.plugin in ("sysctl", "sysfs"):
        yield from _of_place(line, catalogue, version, instances)
        return
    if line.plugin == "net" and line.option in PAIRED:
        yield from _of_pairs(line, catalogue, version, instances)
        return
    name = OPTIONS.get((line.plugin, line.option))
    if name is None or name not in catalogue.tunables:
        raise LeftOutError("is not in the catalogue")
    for tunable in _instances(line, catalogue.tunables[name], catalogue, version, instances):
        yield Wish(line, tunable, line.value)


def _of_place(line: ProfileLine, catalogue: Catalogue, version: KernelVersion, instances: Instances) -> Iterator[Wish]:
    # A sysctl by its name, or a file of sysfs by a path that may be a pattern.
    path = sysctl_path(line.option) if line.plugin == "sysctl" else line.option
    if any(c in path for c in "*?["):
        yield from _of_pattern(line, path, catalogue, version, instances)
        return
    try:
        tunable = catalogue.find_tunable(path)
    except RequestError:
        raise LeftOutError("is not in the catalogue") from None
    where = _tunable_path(tunable, catalogue, version)
    if where != path:
        raise LeftOutError(f"is not supported by Linux {version}, where {tunable.name} is at {where}")
    yield Wish(line, tunable, line.value)


def _of_pattern(
    line: ProfileLine, pattern: str, catalogue: Catalogue, version: KernelVersion, instances: Instances
) -> Iterator[Wish]:
    is_known = False
    for entry in catalogue.tunables.values():
        where = entry.place_in(version)
        if where is None or not _may_match(where.path, pattern):
            continue
        for tunable in [catalogue.instance(entry, which) for which in instances(entry)] if entry.parts else [entry]:
            location = tunable.place_in(version)
            if location and fnmatchcase(location.path, pattern):
                is_known = True
                yield Wish(line, tunable, line.value)
    if not is_known:
        raise LeftOutError("matches no catalogue setting of this machine")


def _may_match(template: str, pattern: str) -> bool:
    parts, wanted = template.split("/"), pattern.split("/")
    both = zip(parts, wanted, strict=False)
    return len(parts) == len(wanted) and all("{" in part or fnmatchcase(part, other) for part, other in both)


def _of_pairs(line: ProfileLine, catalogue: Catalogue, version: KernelVersion, instances: Instances) -> Iterator[Wish]:
    words = line.value.replace(",", " ").split()
    if len(words) % 2:
        raise RequestError(f"{line.words}: expected pairs of a name and a value", place=line.place)
    for word, value in zip(words[::2], words[1::2], strict=True):
        name = paired_tunable(line.option, word, catalogue.tunables)
        if name is None:
            raise LeftOutError(f"has {word}, which is not in the catalogue")
        for tunable in _instances(line, catalogue.tunables[name], catalogue, version, instances):
            yield Wish(line, tunable, value)


def _instances(
    line: ProfileLine, tunable: Tunable, catalogue: Catalogue, version: KernelVersion, instances: Instances
) -> Iterator[Tunable]:
    _tunable_path(tunable, catalogue, version)
    if not tunable.parts:
        yield tunable
        return
    there = [which for which in instances(tunable) if line.plugin != "disk" or not _NO_DISK.match(which)]
    chosen = [which for which in there if _is_for(line.devices, which.partition("/")[0])]
    if not chosen:
        kind = " of a ".join(catalogue.parts[part].title for part in reversed(tunable.parts))
        other = f", but for {line.devices}" if there else ""
        raise LeftOutError(f"has no effect: no {kind} of this machine has {tunable.name}{other}")
    for which in chosen:
        yield catalogue.instance(tunable, which)


def _is_for(devices: str, name: str) -> bool:
    patterns = re.split(r"\s*[,;\s]\s*", devices.strip()) or ["*"]
    without = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    chosen = [pattern for pattern in patterns if not pattern.startswith("!")] or ["*"]
    return any(fnmatchcase(name, wildcard) for wildcard in chosen) and not any(
        fnmatchcase(name, wildcard) for wildcard in without
    )


def _tunable_path(tunable: Tunable, catalogue: Catalogue, version: KernelVersion) -> str:
    where = tunable.place_in(version)
    if where is not None:
        return where.path
    try:
        catalogue.locate(tunable, version)
    except RequestError as failure:
        raise LeftOutError(f"is not supported by this kernel: {failure.message}") from None
    return ""

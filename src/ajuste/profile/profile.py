"""A profile: settings that somebody put together, line by line, and which tunable of the catalogue each line means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ajuste.model.error import Place
from ajuste.model.tunable import Tunable

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


@dataclass(frozen=True)
class ProfileLine:
    """A setting of a profile. ``plugin`` says what ``option`` is of: ``sysctl``, or one of tuned's plug-ins.

    ``devices`` are the devices that it is for, as tuned has them (``*``, ``sd*``, ``!sda``). ``unless`` says why it
    does not hold or cannot be computed here; empty if it does. ``may_fail``: it is no mistake if the kernel lacks it.
    """

    plugin: str
    option: str
    value: str
    file: Path
    number: int | None = None
    devices: str = "*"
    unless: str = ""
    may_fail: bool = False

    @property
    def name(self) -> str:
        """Return the name for people: ``vm.swappiness``, ``cpu governor``."""
        return self.option if self.plugin in ("sysctl", "sysfs") else f"{self.plugin} {self.option}"

    @property
    def words(self) -> str:
        """Name and value, as ``vm.swappiness = 10``."""
        return f"{self.name} = {self.value}"

    @property
    def place(self) -> Place:
        """Return where it is written down."""
        return Place(self.file, self.number)


@dataclass(frozen=True)
class Profile:
    """``name`` is short, ``spec`` what a person calls it by, ``origin`` where it was read. Each option is set once."""

    name: str
    spec: str
    origin: str
    lines: tuple[ProfileLine, ...]


# What a profile may ask of the machine that it is for.


@dataclass(frozen=True)
class MachineFacts:
    """``cpus`` are the numbers of those online. ``cpuinfo`` is /proc/cpuinfo, ``None`` where it is not known before
    the machine runs; ``architecture`` as ``uname -m`` says it; ``virtual``: it is a guest.
    """

    cpus: tuple[int, ...]
    architecture: str = "x86_64"
    cpuinfo: str | None = None
    virtual: bool = False

"""The inventory: one document with all facts, as it is shown, kept and compared."""

from __future__ import annotations

import platform
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Literal

from pydantic import ConfigDict, Field

from ajuste.machine.inventory.devices import (
    Disk,
    KernelEthtool,
    Mount,
    Nic,
    count_virtual,
    take_disks,
    take_mounts,
    take_nics,
)
from ajuste.machine.inventory.processor import (
    Cache,
    Cpu,
    Frequency,
    Idle,
    Memory,
    NumaNode,
    take_caches,
    take_cpu,
    take_frequency,
    take_idle,
    take_memory,
    take_nodes,
)
from ajuste.machine.inventory.software import (
    Kernel,
    Software,
    SystemLimits,
    Virtualisation,
    take_kernel,
    take_limits,
    take_mitigations,
    take_software,
    take_virtualisation,
)
from ajuste.machine.inventory.source import InventorySource
from ajuste.model.base import BaseModel

INVENTORY_VERSION: Final = 1


class Inventory(BaseModel):
    """The inventory of a machine. Nothing in it changes by itself from one minute to the next, and nothing names the
    machine, its user or any device of it: see docs/how-to/compare-machines.md for what is omitted.
    """

    model_config = ConfigDict(extra="ignore")
    inventory: Literal[1] = INVENTORY_VERSION
    cpu: Cpu = Cpu()
    caches: dict[str, Cache] = Field(default_factory=dict)
    numa: dict[str, NumaNode] = Field(default_factory=dict)
    frequency: Frequency = Frequency()
    idle: Idle = Idle()
    mitigations: dict[str, str] = Field(default_factory=dict)
    kernel: Kernel = Kernel()
    memory: Memory = Memory()
    disks: dict[str, Disk] = Field(default_factory=dict)
    mounts: dict[str, Mount] = Field(default_factory=dict)
    nics: dict[str, Nic] = Field(default_factory=dict)
    virtual_nics: int = 0
    virtualisation: Virtualisation = Virtualisation()
    limits: SystemLimits = SystemLimits()
    software: Software = Software()


# Taking the inventory of a machine.


def take_inventory(root: Path = Path("/"), *, programs: bool = False) -> Inventory:
    """Take the inventory of the machine whose files are below ``root``. Never raises for what it reads. Nothing is
    written and, without ``programs``, nothing is started. The kernel is asked about network interfaces only for ``/``.
    """
    source = InventorySource(root)
    with ExitStack() as stack:
        ethtool = None
        if source.is_this_machine:
            with suppress(OSError):  # no sockets here: what only the kernel knows is missing then
                ethtool = stack.enter_context(KernelEthtool())
        return Inventory(
            cpu=take_cpu(source),
            caches=take_caches(source),
            numa=take_nodes(source),
            frequency=take_frequency(source),
            idle=take_idle(source),
            mitigations=take_mitigations(source),
            kernel=take_kernel(source),
            memory=take_memory(source),
            disks=take_disks(source),
            mounts=take_mounts(source),
            nics=take_nics(source, ethtool),
            virtual_nics=count_virtual(source),
            virtualisation=take_virtualisation(source),
            limits=take_limits(source),
            software=take_software(source, programs=programs),
        )


# A machine in five lines, for the head of a report.


def summarise(inventory: Inventory) -> dict[str, str]:
    """Summarise for people: processor, memory, system, kernel, Python."""
    memory = inventory.memory.total_bytes
    return {
        "processor": f"{inventory.cpu.model or platform.machine()}, {inventory.cpu.cpus or '?'} CPUs",
        "memory": f"{memory / 2**30:.1f} GiB" if memory else "unknown",
        "system": inventory.software.system or "Linux",
        "kernel": inventory.kernel.release or "unknown",
        "Python": inventory.software.python,
    }

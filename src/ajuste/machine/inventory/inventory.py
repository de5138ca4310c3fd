"""The inventory: one document with all facts, as it is shown, kept and compared."""

from __future__ import annotations

import platform
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from ajuste.machine.inventory.cpu import Cpu, Frequency, Idle, take_cpu, take_frequency, take_idle
from ajuste.machine.inventory.kernel import Kernel, SystemLimits, take_kernel, take_limits, take_mitigations
from ajuste.machine.inventory.memory import Cache, Memory, NumaNode, take_caches, take_memory, take_nodes
from ajuste.machine.inventory.network import Ethtool, KernelEthtool, Nic, count_virtual, take_nics
from ajuste.machine.inventory.software import Software, Virtualisation, take_software, take_virtualisation
from ajuste.machine.inventory.source import InventorySource
from ajuste.machine.inventory.storage import Disk, Mount, take_disks, take_mounts

INVENTORY_VERSION: Final = 1


class Inventory(BaseModel):
    """What a machine is. Nothing in it changes by itself from one minute to the next, and nothing names the machine,
    its user or any device of it: see docs/how-to/compare-machines.md for what is left out.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")
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


def take_inventory(root: Path = Path("/"), *, programs: bool = False, ethtool: Ethtool | None = None) -> Inventory:
    """The inventory of the machine whose files are below ``root``. Never raises for what it finds there.

    Nothing is written and, without ``programs``, nothing is started. The kernel is
    asked about network interfaces through ``ethtool``, by default only for ``/``.
    """
    source = InventorySource(root)
    with ExitStack() as stack:
        if ethtool is None and source.is_this_machine:
            ethtool = _kernel_ethtool(stack)
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


def _kernel_ethtool(stack: ExitStack) -> Ethtool | None:
    try:
        return stack.enter_context(KernelEthtool())
    except OSError:  # no sockets here: what only the kernel knows is missing then
        return None


# A machine in five lines, for the head of a report.


def summary_of(inventory: Inventory) -> dict[str, str]:
    """For people: processor, memory, system, kernel, Python."""
    memory = inventory.memory.total_bytes
    return {
        "processor": f"{inventory.cpu.model or platform.machine()}, {inventory.cpu.cpus or '?'} CPUs",
        "memory": f"{memory / 2**30:.1f} GiB" if memory else "unknown",
        "system": inventory.software.system or "Linux",
        "kernel": inventory.kernel.release or "unknown",
        "Python": inventory.software.python,
    }

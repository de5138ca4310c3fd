"""Taking the inventory of a machine."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from ajuste.inventory.cache import take_caches
from ajuste.inventory.cpu import take_cpu
from ajuste.inventory.disk import take_disks
from ajuste.inventory.document import Inventory
from ajuste.inventory.ethtool import Ethtool, KernelEthtool
from ajuste.inventory.frequency import take_frequency
from ajuste.inventory.idle import take_idle
from ajuste.inventory.kernel import take_kernel
from ajuste.inventory.limit import take_limits
from ajuste.inventory.memory import take_memory
from ajuste.inventory.mitigation import take_mitigations
from ajuste.inventory.mount import take_mounts
from ajuste.inventory.nic import count_virtual, take_nics
from ajuste.inventory.numa import take_nodes
from ajuste.inventory.software import take_software
from ajuste.inventory.source import Source
from ajuste.inventory.virtualisation import take_virtualisation


def take_inventory(root: Path = Path("/"), *, programs: bool = False, ethtool: Ethtool | None = None) -> Inventory:
    """The inventory of the machine whose files are below ``root``. Never raises for what it finds there.

    Nothing is written and, without ``programs``, nothing is started. The kernel is
    asked about network interfaces through ``ethtool``, by default only for ``/``.
    """
    source = Source(root)
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

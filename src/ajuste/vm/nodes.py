"""Options of QEMU for a machine with several nodes of memory.

Source: qemu(1), -numa; ACPI's tables SRAT and SLIT are what the guest's kernel reads of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ajuste.model.memory_node import MemoryNode


def node_options(nodes: Sequence[MemoryNode]) -> Iterator[str]:
    """Arguments for ``nodes``, whose CPUs are numbered in their order; none for a machine without."""
    first_cpu = 0
    for number, node in enumerate(nodes):
        yield from ("-object", f"memory-backend-ram,id=node{number},size={node.memory_mib}M")
        cpus = f",cpus={first_cpu}-{first_cpu + node.cpus - 1}" if node.cpus else ""
        yield from ("-numa", f"node,nodeid={number}{cpus},memdev=node{number}")
        first_cpu += node.cpus
    for number, node in enumerate(nodes):
        for other, distance in enumerate(node.distances):
            if other != number:
                yield from ("-numa", f"dist,src={number},dst={other},val={distance}")

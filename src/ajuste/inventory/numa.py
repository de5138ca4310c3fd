"""NUMA nodes, as ``numactl --hardware`` shows them."""

from __future__ import annotations

import re

from ajuste.inventory.cpu_list import cpus_in, list_of
from ajuste.inventory.section import Section
from ajuste.inventory.source import NOT_UNDERSTOOD, Source, whole_number

_NODES = "/sys/devices/system/node"


class Node(Section):
    """``cpus`` as a list, ``distances`` to all nodes in their order (10 is local; ACPI's SLIT)."""

    cpus: str = ""
    memory_bytes: int | None = None
    distances: tuple[int, ...] = ()


def take_nodes(source: Source) -> dict[str, Node]:
    """By the kernel's names: node0, node1 … Empty for a kernel without NUMA."""
    return {name: _node(source, name) for name in source.names(_NODES) if re.fullmatch(r"node[0-9]{1,4}", name)}


def _node(source: Source, name: str) -> Node:
    total = (re.search(r"MemTotal:\s*([0-9]{1,18}) kB", line) for line in source.lines(f"{_NODES}/{name}/meminfo"))
    found = next((match for match in total if match), None)
    distances = [whole_number(word) for word in source.line(f"{_NODES}/{name}/distance").split()]
    return Node(
        cpus=list_of(cpus_in(source.line(f"{_NODES}/{name}/cpulist"))),
        memory_bytes=int(found[1]) * 1024 if found else None,
        distances=tuple(distance for distance in distances if distance is not None),
        unknown={} if found else {"memory_bytes": NOT_UNDERSTOOD},
    )

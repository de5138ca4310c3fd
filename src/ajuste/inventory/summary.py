"""A machine in five lines, for the head of a report."""

from __future__ import annotations

import platform

from ajuste.inventory.document import Inventory


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

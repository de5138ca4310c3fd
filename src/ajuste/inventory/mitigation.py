"""Vulnerabilities of the processor, and what the kernel does about them."""

from __future__ import annotations

from ajuste.inventory.source import Missing, Source

_PLACE = "/sys/devices/system/cpu/vulnerabilities"


def take_mitigations(source: Source) -> dict[str, str]:
    """By the kernel's names, in its words (Documentation/ABI/testing/sysfs-devices-system-cpu)."""
    found = {name: source.text(f"{_PLACE}/{name}") for name in source.names(_PLACE)}
    return {name: f"unknown: {said.reason}" if isinstance(said, Missing) else said for name, said in found.items()}

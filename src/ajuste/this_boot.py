"""Since when this machine has been up, so that what is of an earlier time can be told."""

from __future__ import annotations

from pathlib import Path


def machine_id() -> str:
    """What distinguishes this machine from others that may share a directory with it; empty where it has none.

    Source: machine-id(5).
    """
    try:
        return Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def boot_id() -> str:
    """What distinguishes this boot of the machine from all others (random(4))."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()

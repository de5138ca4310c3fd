"""Since when this machine has been up, so that what is of an earlier time can be told."""

from __future__ import annotations

from pathlib import Path


def boot_id() -> str:
    """What distinguishes this boot of the machine from all others (random(4))."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()

"""Since when this machine has been up, so that what is of an earlier time can be told."""

from __future__ import annotations

import hashlib
import platform
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


# What tells this machine from every other, so that what was measured on two of them is never taken for one.


_IDENTITIES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


def machine_marks() -> dict[str, str]:
    """Kernel, processor and identity of this machine, as far as they matter to what is measured on it.

    They only ever go into a fingerprint: an identity must not be shown as it is (machine-id(5)).
    """
    return {
        "kernel": f"{platform.release()} {platform.version()}",
        "processor": _processor(),
        "machine": hashlib.sha256(b"ajuste" + _identity()).hexdigest(),
    }


def _processor() -> str:
    """As /proc/cpuinfo says it (proc_cpuinfo(5)); the architecture where it says nothing."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()


def _identity() -> bytes:
    for path in _IDENTITIES:
        try:
            return path.read_bytes().strip()
        except OSError:
            continue
    return platform.node().encode()

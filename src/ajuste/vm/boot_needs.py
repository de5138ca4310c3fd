"""What a kernel must have so that a guest comes up, and which of it one lacks that did not."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ajuste.kernel.kconfig.config_file import read_config
from ajuste.model.error import RequestError

_NEEDS: Final = {
    "64BIT": "it is no 64-bit kernel",
    "BLK_DEV_INITRD": "it cannot use an initramfs",
    "BINFMT_ELF": "it cannot run programs",
    "DEVTMPFS": "it has no devices in /dev",
    "PROC_FS": "it has no /proc",
    "SYSFS": "it has no /sys",
    "X86_IOPL_IOPERM": "programs cannot use I/O ports, through which the guest answers",
    "FUTEX": "threads cannot wait for each other",
    "EPOLL": "it lacks system calls that every program of today uses",
    "MULTIUSER": "it has no users",
    "TTY": "it has no terminals",
    "SERIAL_8250_CONSOLE": "it has no serial console, so that nothing it says can be seen",
    "PRINTK": "it prints nothing",
}
"""By option; the likeliest causes first."""

_SIGNS: Final = {
    "Unable to mount root fs": "it did not use its initramfs",
    "No working init found": "it could not run the first program of the initramfs",
    "Requested init /init failed (error -8)": "it cannot run programs",
    "Out of memory": "the guest has too little memory: --memory, or memory_mib in the study",
    "System is deadlocked on memory": "the guest has too little memory: --memory, or memory_mib in the study",
}
"""By what the console says."""


def likely_causes(config: Path | None, console: str) -> str | None:
    """Why a kernel with that ``.config`` (if it is known) may not have come up, or ``None``."""
    seen = [meaning for sign, meaning in _SIGNS.items() if sign in console]
    seen += [f"{meaning} ({name} is off)" for name, meaning in _NEEDS.items() if name in _off(config)]
    return f"likely cause: {'; '.join(dict.fromkeys(seen))}" if seen else None


def _off(config: Path | None) -> frozenset[str]:
    if config is None:
        return frozenset()
    try:
        options = read_config(config)
    except RequestError:
        return frozenset()
    return frozenset(name for name in _NEEDS if not options[name].is_on)

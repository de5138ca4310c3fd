"""Identity of this machine, its boot and its processes, and the sessions whose process is gone.

A session is a directory of a process that runs machines (``ajuste_guest.session``).
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from pathlib import Path

from ajuste.machine.files import read_kept

_IDENTITIES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
MARKER = ".ajuste-session"
PREFIX = "vm-"
_UNMARKED_SECONDS = 600


# When this machine booted, so that files of an earlier boot are recognised.


def machine_id() -> str:
    """Return what distinguishes this machine from others on a shared directory, or empty. Source: machine-id(5)."""
    try:
        return Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def boot_id() -> str:
    """Return what distinguishes this boot of the machine from all others (random(4))."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def started_ticks(pid: int) -> int:
    """Return when a process began, in clock ticks since this machine did, 0 where there is none. Setting the clock does
    not change it (proc_pid_stat(5)).
    """
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


# What tells this machine from every other, so that what was measured on two of them is never taken for one.


def machine_marks() -> dict[str, str]:
    """Return kernel, processor and identity of this machine, as far as they matter to measurements. They only ever go
    into a fingerprint: an identity must not be shown as it is (machine-id(5)).
    """
    # As /proc/cpuinfo says it (proc_cpuinfo(5)); the architecture where it says nothing.
    lines = (line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines())
    processors = (value.strip() for key, _, value in lines if key.strip() == "model name")
    return {
        "kernel": f"{platform.release()} {platform.version()}",
        "processor": next(processors, platform.machine()),
        "machine": hashlib.sha256(b"ajuste" + _identity()).hexdigest(),
    }


def _identity() -> bytes:
    for path in _IDENTITIES:
        try:
            return path.read_bytes().strip()
        except OSError:
            continue
    return platform.node().encode()


def stale(sessions: Path) -> list[Path]:
    """Return the session directories of this machine whose owner is gone."""
    return [directory for directory in sorted(sessions.glob(f"{PREFIX}*")) if _is_stale(directory)]


def _is_stale(directory: Path) -> bool:
    try:
        owner = json.loads(read_kept(directory / MARKER))
    except FileNotFoundError:
        return _is_empty_and_old(directory)
    except (OSError, ValueError):
        return False  # Not ours.
    return not _alive(owner)


def _is_empty_and_old(directory: Path) -> bool:
    # Whether its owner was killed before it wrote its name: writing takes no time.
    try:
        return not any(directory.iterdir()) and time.time() - directory.stat().st_mtime > _UNMARKED_SECONDS
    except OSError:
        return False


def _alive(owner: object) -> bool:
    if not isinstance(owner, dict):
        return False
    if owner.get("machine", machine_id()) != machine_id():
        return True  # Of a machine that shares this directory: only that one can tell.
    if owner.get("boot") != boot_id():
        return False
    try:
        started = started_ticks(int(owner.get("pid", -1)))
    except (ValueError, TypeError):
        return False
    return started > 0 and owner.get("started_ticks", started) == started  # An earlier Ajuste kept a time of the day.

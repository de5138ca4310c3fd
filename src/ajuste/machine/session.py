"""The temporary directory of running machines, which is removed whatever happens.

Leaving removes it. If this process dies without leaving, its guardian (``ajuste-agent sweep``) notices that its
standard input was closed and removes it; if the guardian died as well, the next session does.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

from ajuste.machine.files import make_directory, read_kept
from ajuste.machine.home import AGENT, Home, native_program
from ajuste.model.error import RequestError

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


_IDENTITIES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))


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


MARKER = ".ajuste-session"
_PREFIX = "vm-"
_GUARDIAN_GRACE_SECONDS = 10
_UNMARKED_SECONDS = 600


class MachineSession:
    """A directory for this process. ``directory`` exists between entering and leaving."""

    def __init__(self, home: Home) -> None:
        self._sessions = home.sessions
        self._directory: Path | None = None
        self._guardian: subprocess.Popen[bytes] | None = None

    @property
    def directory(self) -> Path:
        assert self._directory is not None, "the session was not entered"
        return self._directory

    def __enter__(self) -> Self:
        agent = native_program(AGENT)
        try:
            make_directory(self._sessions)
            remove_stale(self._sessions)
            # Resolved, because the guardian looks for it in command lines.
            self._directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._sessions.resolve()))
            (self._directory / MARKER).write_text(json.dumps(_owner()))
        except OSError as error:
            self._remove()
            raise RequestError(
                f"cannot create a directory in {self._sessions}: {error.strerror}",
                hint="set AJUSTE_HOME to a directory you can write to",
            ) from error
        # A session of its own, so that Ctrl-C at the terminal does not reach it.
        self._guardian = subprocess.Popen(
            [agent, "sweep", self._directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        return self

    def __exit__(self, *_: object) -> None:
        # The guardian ends the machines that still run, for a caller that was interrupted while threads wait for them.
        if self._guardian is not None:
            assert self._guardian.stdin is not None
            with contextlib.suppress(OSError):
                self._guardian.stdin.close()
            try:
                self._guardian.wait(_GUARDIAN_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self._guardian.kill()
                self._guardian.wait()
        self._remove()

    def _remove(self) -> None:
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)


def remove_stale(sessions: Path) -> None:
    """Remove the session directories whose owner is gone."""
    for directory in stale(sessions):
        shutil.rmtree(directory, ignore_errors=True)


def stale(sessions: Path) -> list[Path]:
    """Return the session directories of this machine whose owner is gone."""
    return [directory for directory in sorted(sessions.glob(f"{_PREFIX}*")) if _is_stale(directory)]


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


def _owner() -> dict[str, object]:
    return {
        "pid": os.getpid(),
        "started_ticks": started_ticks(os.getpid()),
        "boot": boot_id(),
        "machine": machine_id(),
    }


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

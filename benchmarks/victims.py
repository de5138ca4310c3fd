"""The processes of an experiment that is to be killed: which they are, whether they have ended, and what they leave."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ajuste.executor.host.machine_lock import LOCK

LONGEST_SECONDS = 120
ENDING_SECONDS = 5
SLEEP = "0.0200731"
"""Seconds that a workload sleeps: a number by which its process is known."""


def stat_of(pid: int) -> tuple[str, str, int] | None:
    """Name, state and parent of a process (proc_pid_stat(5))."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition(" (")[2].rpartition(") ")
    except OSError:
        return None
    state, parent, *_ = rest.split()
    return name, state, int(parent)


def holder_named(name: str) -> int | None:
    """The process of that name that holds the machine. There is one experiment at a time, so it is ours."""
    for path in Path("/proc").glob("[0-9]*"):
        stat = stat_of(int(path.name))
        if stat and stat[0] == name and stat[1] != "Z" and _has_open(path, LOCK):
            return int(path.name)
    return None


def child_named(name: str, parent: int | None) -> int | None:
    """The process of that name which ``parent`` has begun."""
    for path in Path("/proc").glob("[0-9]*"):
        stat = stat_of(int(path.name))
        if stat and stat[0] == name and stat[1] != "Z" and stat[2] == parent:
            return int(path.name)
    return None


def _has_open(process: Path, file: Path) -> bool:
    """Return whether a process has this very file open: with a /run of its own it has another one of the same name."""
    with suppress(OSError):
        for door in list((process / "fd").iterdir()):
            # It may close some meanwhile.
            with suppress(OSError):
                if door.samefile(file):
                    return True
    return False


def ended(pid: int) -> bool:
    stat = stat_of(pid)
    return stat is None or stat[1] == "Z"


def exit_of(pid: int) -> int:
    """The exit code of a child, negative for a signal; it is killed if it does not end."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while not ended(pid) and time.monotonic() < deadline:
        time.sleep(0.005)
    if not ended(pid):
        os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def workloads() -> list[int]:
    pids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if SLEEP.encode() in path.read_bytes() and not ended(int(path.parent.name)):
                pids.append(int(path.parent.name))
    return pids


def survivors(pids: Mapping[str, int]) -> list[int]:
    """Return those still there of who was killed, their helpers and workloads, a moment after all is over."""
    deadline = time.monotonic() + ENDING_SECONDS
    while True:
        alive = [*(pid for part, pid in pids.items() if part != "orchestrator" and not ended(pid)), *workloads()]
        if not alive or time.monotonic() > deadline:
            return alive
        time.sleep(0.01)


@contextmanager
def machine_free() -> Iterator[None]:
    """Until nobody, no guardian either, holds the machine."""
    # As Ajuste makes it: what others could open is not used.
    with os.fdopen(os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as file:
        deadline = time.monotonic() + LONGEST_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.005)
        yield

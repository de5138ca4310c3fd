"""The machine's lock: one experiment at a time changes or measures a machine, whoever's it is and wherever it is kept.

The file lies where everybody may make files, so nothing is believed of it: it is no link, its content is only used to
say who holds it, and the lock itself is the kernel's.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from ajuste.model.error import RequestError
from ajuste.this_boot import boot_id

LOCK: Final = Path("/run/lock/ajuste.lock")

CLEARING_SECONDS: Final = 10.0
"""For so long an agent may still put values back after the one who started it has died."""

_held_here: set[Path] = set()
"""The locks that this process itself holds now."""

_LONGEST_CONTENT = 4096
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True)
class Holder:
    """Who holds the lock. ``pid`` is 0 where it cannot be known, ``since`` when the lock was taken."""

    pid: int
    since: datetime | None = None

    @property
    def alive(self) -> bool:
        return self.pid == 0 or Path(f"/proc/{self.pid}").exists()

    def __str__(self) -> str:
        who = f"process {self.pid}" if self.pid else "another process"
        return f"{who}, since {self.since.astimezone():%Y-%m-%d %H:%M:%S}" if self.since else who


class MachineLock:
    """A context manager that holds the machine. ``descriptor`` may be left to processes that are to hold it too: it is
    free when the last of them has ended.

    ``journals`` is where the experiment keeps its journals; ``None`` for what is no experiment. Entering raises
    RequestError, naming the holder, if another experiment goes on.
    """

    def __init__(self, journals: Path | None, path: Path = LOCK) -> None:
        self._journals = journals
        self._path = path
        self._descriptor: int | None = None
        self.journals_before: Path | None = None
        """Where the last experiment of this boot kept its journals, as far as that can be believed."""

    @property
    def descriptor(self) -> int:
        assert self._descriptor is not None, "the lock is not held"
        return self._descriptor

    def __enter__(self) -> Self:
        deadline = time.monotonic() + CLEARING_SECONDS
        while self._descriptor is None:
            opened = _open(self._path)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = _holder(opened)
                os.close(opened)
                held = self._is_held(holder)
                if held or time.monotonic() > deadline:
                    raise _busy(holder, held=held) from None
                time.sleep(_PAUSE_SECONDS)
                continue
            if not _is_still(self._path, opened):
                os.close(opened)
                continue
            self.journals_before = _journals_of(opened)
            _sign(opened, self._journals or self.journals_before)
            self._descriptor = opened
            _held_here.add(self._path)
        return self

    def _is_held(self, holder: Holder) -> bool:
        """Whether an experiment still goes on; if not, what it started has yet to end: its agent, or its guardian."""
        return self._path in _held_here if holder.pid == os.getpid() else holder.alive

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _held_here.discard(self._path)
        os.close(self.descriptor)
        self._descriptor = None


def _busy(holder: Holder, *, held: bool) -> RequestError:
    if held:
        return RequestError(
            f"another experiment goes on on this machine: {holder}",
            hint="one at a time is measured; wait for it, or interrupt it: it goes on later",
        )
    return RequestError(
        f"an experiment on this machine was ended ({holder}), and its agent still puts values back",
        hint="wait a moment and try again",
    )


def _open(path: Path) -> int:
    """The lock file, made if need be; for writing where that is permitted.

    Opened without O_CREAT first: with fs.protected_regular even root may not create over another's file in a sticky
    directory (proc_sys_fs(5)). Raises RequestError for what is no plain file of its own.
    """
    flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    tries = [os.O_RDWR, os.O_RDONLY, os.O_RDWR | os.O_CREAT | os.O_EXCL]
    problem: OSError | None = None
    for mode in tries * 2:
        try:
            descriptor = os.open(path, mode | flags, 0o644)
        except OSError as error:
            problem = error
            continue
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:
            if mode & os.O_CREAT:
                os.fchmod(descriptor, 0o644)
            return descriptor
        os.close(descriptor)
        break
    raise RequestError(
        f"the machine's lock {path} is no file that can be used{f': {problem.strerror}' if problem else ''}",
        hint=f"if it is not Ajuste's own, remove it: rm {path}",
    )


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False


def _sign(descriptor: int, journals: Path | None) -> None:
    """Say who holds it. Whoever may not write there does not: the kernel knows the holder as well."""
    content = {
        "pid": os.getpid(),
        "boot": boot_id(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "journals": str(journals) if journals is not None else None,
    }
    try:
        if os.geteuid() == 0:
            os.fchown(descriptor, 0, 0)
            os.fchmod(descriptor, 0o644)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(content).encode(), 0)
    except OSError:
        return


def _content(descriptor: int) -> dict[str, Any]:
    """What is written there; nothing if it is of another boot or no such content."""
    try:
        content = json.loads(os.pread(descriptor, _LONGEST_CONTENT, 0))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) and content.get("boot") == boot_id() else {}


def _journals_of(descriptor: int) -> Path | None:
    """Believed only of root and of oneself."""
    if os.fstat(descriptor).st_uid not in (0, os.geteuid()):
        return None
    journals = _content(descriptor).get("journals")
    return Path(journals) if isinstance(journals, str) and journals.startswith("/") and "\0" not in journals else None


def _holder(descriptor: int) -> Holder:
    """As the kernel says; what is written in the file only adds since when."""
    content = _content(descriptor)
    said = content.get("pid")
    pid = _locker(descriptor) or (said if type(said) is int and 0 < said < 2**31 else 0)
    since = None
    if said == pid and isinstance(content.get("since"), str):
        try:
            since = datetime.fromisoformat(content["since"])
        except ValueError:
            since = None
    return Holder(pid, since if since and since.tzinfo else None)


def _locker(descriptor: int) -> int:
    """Who took the flock, by /proc/locks (proc_locks(5)); 0 if it is not there."""
    found = os.fstat(descriptor)
    file = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return 0
    for words in map(str.split, lines):
        if len(words) > 5 and words[1] == "FLOCK" and words[5] == file and words[4].isdecimal():
            return int(words[4])
    return 0

"""The machine's lock: one experiment at a time changes or measures a machine, of any user and of any home.

Each user has a lock of their own that nobody else can open, so nobody keeps root from the machine by holding a file.
Who has the machine is said beside it (``machine_status``): a user takes their own lock, says so, and then looks at what
the others say. Two who come at once may both be refused.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ajuste.executor.host.machine_status import (
    Holder,
    Use,
    other_holders,
    own_holder,
    remove_anothers,
    status_name,
    write_status,
)
from ajuste.machine.files import user_name
from ajuste.model.error import RequestError

DIRECTORY: Final = Path("/run/lock")

LOCK: Final = DIRECTORY / "ajuste.lock"
"""Root's."""

CLEARING_SECONDS: Final = 10.0
"""For so long an agent may still put values back after the one who started it has died."""

_held_here: set[Path] = set()
"""The locks that this process itself holds now."""

_PAUSE_SECONDS = 0.05
_TRIES = 5


class MachineLock:
    """A context manager that holds the machine. ``descriptor`` may be left to processes that are to hold it too: it is
    free when the last of them has ended.

    Entering raises RequestError, naming the holder, if the machine is in use. Only an experiment of the same user is in
    the way of a restoration. Anything else, such as a lock that is held for another reason or a file that is not
    Ajuste's, is said in ``found`` and passed by.
    """

    def __init__(self, use: Use, directory: Path = DIRECTORY) -> None:
        uid = os.geteuid()
        self._use = use
        self._path = directory / lock_name(uid)
        self._status = directory / status_name(uid)
        self._descriptor: int | None = None
        self._has_said = False
        self.found: list[str] = []

    @property
    def descriptor(self) -> int:
        assert self._descriptor is not None, "the lock is not held"
        return self._descriptor

    def __enter__(self) -> Self:
        try:
            for step in (self._take, self._say, self._look_at_others):
                try:
                    step()
                except RequestError as error:
                    if self._use != "restoration" or isinstance(error, _InUse):
                        raise
                    self.found.append(error.message)
        except BaseException:
            self._let_go()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._let_go()

    def _take(self) -> None:
        deadline = time.monotonic() + CLEARING_SECONDS
        while True:
            opened = _opened(self._path, self.found)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = own_holder(self._status) or Holder(_locker(opened), os.geteuid())
                os.close(opened)
                self._wait_for(holder, deadline)
                continue
            if _is_still(self._path, opened):
                break
            os.close(opened)
        self._descriptor = opened
        _held_here.add(self._path)

    def _wait_for(self, holder: Holder, deadline: float) -> None:
        """A moment, if what an experiment started has yet to end: its agent, or its guardian."""
        if self._use == "restoration" and holder.use != "experiment":
            raise RequestError(
                f"{self._path} is held by {holder}, which is not an experiment", hint="wait until it ends and try again"
            )
        held = self._path in _held_here if holder.pid == os.getpid() else holder.alive
        if held or time.monotonic() > deadline:
            raise _busy(holder, held=held)
        time.sleep(_PAUSE_SECONDS)

    def _say(self) -> None:
        if self._descriptor is None:
            return
        said = own_holder(self._status)
        # Whose lock was removed while they had it says so all the same.
        if said is not None and said.alive and said.pid != os.getpid():
            self._refuse_or_pass_by(said)
            return
        if os.geteuid() == 0 and (note := remove_anothers(self._status)):
            self.found.append(note)
        write_status(self._status, self._use)
        self._has_said = True

    def _look_at_others(self) -> None:
        for holder in other_holders(self._status.parent):
            self._refuse_or_pass_by(holder)

    def _refuse_or_pass_by(self, holder: Holder) -> None:
        if self._use != "restoration" or (holder.uid == os.geteuid() and holder.use == "experiment"):
            raise _busy(holder, held=True)
        self.found.append(f"this machine is in use: {holder}")

    def _let_go(self) -> None:
        if self._descriptor is None:
            return
        _held_here.discard(self._path)
        os.close(self._descriptor)
        self._descriptor = None
        # What inherited the lock still has the machine, and the status stays true.
        if self._has_said and _is_free(self._path):
            self._status.unlink(missing_ok=True)
        self._has_said = False


class _InUse(RequestError):
    """The machine is in use, and that must not be disturbed."""


def lock_name(uid: int) -> str:
    """The file that is a user's lock."""
    return LOCK.name if uid == 0 else f"ajuste-{uid}.lock"


def _busy(holder: Holder, *, held: bool) -> RequestError:
    if not held:
        return _InUse(
            f"an experiment on this machine ended ({holder}); its agent is still restoring values",
            hint="wait a moment and try again",
        )
    if holder.use == "restoration":
        return _InUse(f"values are being restored on this machine: {holder}", hint="wait a moment and try again")
    return _InUse(
        f"another experiment is running on this machine: {holder}",
        hint="wait until it ends, or interrupt it; run its command again to resume",
    )


def _opened(path: Path, found: list[str]) -> int:
    """This user's lock file, made if need be. Nobody else could ever open it, or it is not used.

    Root takes away what is something else. Opened without O_CREAT first: with fs.protected_regular even root may not
    create over another's file in a sticky directory (proc_sys_fs(5)). Raises RequestError.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        for _ in range(_TRIES):
            try:
                there = path.lstat()
            except FileNotFoundError:
                try:
                    return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
                except FileExistsError:
                    continue
            if _is_own(there):
                try:
                    descriptor = os.open(path, flags)
                except FileNotFoundError:
                    continue
                if _is_own(os.fstat(descriptor)):
                    return descriptor
                os.close(descriptor)
            elif os.geteuid() != 0:
                raise _unfit(path, f"it belongs to {user_name(there.st_uid)}")
            elif stat.S_ISREG(there.st_mode) and there.st_uid == 0:
                path.unlink(missing_ok=True)  # Others could open it.
            elif note := remove_anothers(path):
                found.append(note)
    except OSError as error:
        raise _unfit(path, str(error.strerror)) from error
    raise _unfit(path, "it keeps changing")


def _is_own(found: os.stat_result) -> bool:
    mine = found.st_uid == os.geteuid() and found.st_nlink == 1
    return stat.S_ISREG(found.st_mode) and mine and not stat.S_IMODE(found.st_mode) & 0o077


def _unfit(path: Path, why: str) -> RequestError:
    return RequestError(
        f"cannot use the machine's lock {path}: {why}",
        hint=f"remove it as root if Ajuste did not make it: rm {path}",
    )


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False


def _is_free(path: Path) -> bool:
    """Whether no process that inherited the lock has it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)


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

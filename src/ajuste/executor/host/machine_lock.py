"""The machine's lock: one experiment at a time changes or measures a machine, of any user and of any home.

Each user has a lock of their own that nobody else can open, so nobody keeps root from the machine by holding a file.
A file beside it, which all users can read, names the holder. A user takes their own lock, writes the file, and then
reads those of the others. Two who come at once may both be refused. A file counts only if the process that it names
is alive, began at the time in the file, and belongs to the file's owner. Only plain files are opened, so that no
link, pipe or device makes anybody wait.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, Self, get_args

from ajuste.machine.files import user_name
from ajuste.machine.session import boot_id, started_ticks
from ajuste.model.error import RequestError
from ajuste.model.live import duration
from ajuste.model.wording import Say

Use = Literal["experiment", "measurement", "restoration", "unknown"]

_NAME: Final = re.compile(r"ajuste(-[0-9]{1,10})?\.status")
_LONGEST = 4096
_OPEN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

DIRECTORY: Final = Path("/run/lock")

LOCK: Final = DIRECTORY / "ajuste.lock"
"""Root's."""

CLEARING_SECONDS: Final = 10.0
"""Maximum time in seconds for which an agent restores values after the process that started it has died."""

# The locks that this process itself holds now.
_held_here: set[Path] = set()

_PAUSE_SECONDS = 0.05
_WAITING_PAUSE_SECONDS = 0.25
_TRIES = 5


@dataclass(frozen=True)
class Holder:
    """The process that holds the machine's lock, taken at ``since``. ``pid`` is 0 if it cannot be known."""

    pid: int
    uid: int
    use: Use = "unknown"
    started: int = 0
    """Start time of the process in ticks since boot, as in proc_pid_stat(5); 0 if not known."""
    since: datetime | None = None

    @property
    def alive(self) -> bool:
        return self.pid == 0 or (Path(f"/proc/{self.pid}").exists() and self.started in (0, started_ticks(self.pid)))

    def __str__(self) -> str:
        who = f"process {self.pid}" if self.pid else "another process"
        whose = "" if self.uid == os.geteuid() else f" of {user_name(self.uid)}"
        return f"{who}{whose}{f', since {self.since:%Y-%m-%d %H:%M:%S}' if self.since else ''}"


def status_name(uid: int) -> str:
    """Return the file in which a user says so."""
    return "ajuste.status" if uid == 0 else f"ajuste-{uid}.status"


def write_status(path: Path, use: Use) -> None:
    """Say that this process has the machine. Raises RequestError where another user's file is in the way."""
    document = {
        "pid": os.getpid(),
        "started": started_ticks(os.getpid()),
        "boot": boot_id(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "use": use,
    }
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, 0o600)
        try:
            os.fchmod(descriptor, 0o644)
            os.write(descriptor, json.dumps(document).encode())
            new.replace(path)
        finally:
            os.close(descriptor)
            new.unlink(missing_ok=True)
    except OSError as error:
        raise RequestError(
            f"cannot write {path}, the status of this machine's experiments: {error.strerror}",
            hint=f"remove it as root if Ajuste did not make it: rm {path}",
        ) from error


def user_holder(path: Path) -> Holder | None:
    """Return the holder that a file of this very user names, in this boot; the process may have ended."""
    holder = _read(path)
    return holder if holder is not None and holder.uid == os.geteuid() else None


def other_holders(directory: Path) -> Iterator[Holder]:
    """Yield the other users that have the machine, as far as they can be believed."""
    try:
        names = sorted(name for name in os.listdir(directory) if _NAME.fullmatch(name))  # noqa: PTH208 - names only
    except OSError:
        return
    for name in names:
        holder = _read(directory / name)
        if holder is None or holder.uid == os.geteuid() or name != status_name(holder.uid):
            continue
        if holder.uid in _owners(holder.pid) and started_ticks(holder.pid) == holder.started:
            yield holder


def remove_anothers(path: Path) -> str:
    """Remove, as root, whatever is at ``path`` but a plain file of root's, without opening it; return what was done."""
    try:
        status = path.lstat()
    except OSError:
        return ""
    if stat.S_ISREG(status.st_mode) and status.st_uid == 0 and status.st_nlink == 1:
        return ""
    try:
        if stat.S_ISDIR(status.st_mode):
            path.rename(path.with_name(f"{path.name}.{secrets.token_hex(8)}"))
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise RequestError(
            f"{path} belongs to another user or program; cannot remove it: {error.strerror}",
            hint="remove it and try again",
        ) from error
    return f"removed {path}, which Ajuste had not made (it belonged to {user_name(status.st_uid)})"


def _owners(pid: int) -> set[int]:
    try:
        match = re.search(r"^Uid:\s+(\d+)\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return set()
    return {int(match[1]), int(match[2])} if match else set()


def _read(path: Path) -> Holder | None:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        descriptor = os.open(path, os.O_RDONLY | _OPEN)
        try:
            status = os.fstat(descriptor)
            plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
            document = json.loads(os.pread(descriptor, _LONGEST, 0)) if plain else None
        finally:
            os.close(descriptor)
    except (OSError, ValueError, RecursionError):
        return None
    return _holder(document, status.st_uid) if isinstance(document, dict) else None


def _holder(document: dict[str, Any], uid: int) -> Holder | None:
    match document:
        case {"pid": int(pid), "started": int(started), "boot": str(boot), "use": str(use)} if (
            0 < pid < 2**31 and 0 < started < 2**63 and boot == boot_id() and use in get_args(Use)
        ):
            return Holder(pid, uid, use, started, _time(document.get("since")))  # type: ignore[arg-type]
    return None


def _time(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
        return moment.astimezone() if moment is not None and moment.tzinfo else None
    except (ValueError, OverflowError, OSError):
        return None


class MachineLock:
    """A context manager that holds the machine. ``descriptor`` may be left to processes that are to hold it too: it is
    free when the last of them has ended.

    Entering raises RequestError, naming the holder, if the machine is still in use after ``wait_s`` seconds; ``say``
    gets a message while it waits. Only an experiment of the same user blocks a restoration. Anything else, such as a
    lock that is held for another reason or a file that is not Ajuste's, is listed in ``notes`` and ignored.
    """

    def __init__(self, use: Use, directory: Path = DIRECTORY, *, wait_s: float = 0, say: Say = lambda _: None) -> None:
        uid = os.geteuid()
        self._use = use
        self._wait_s = wait_s
        self._tell = say
        self._path = directory / lock_name(uid)
        self._status = directory / status_name(uid)
        self._descriptor: int | None = None
        self._has_said = False
        self.notes: list[str] = []

    @property
    def descriptor(self) -> int:
        assert self._descriptor is not None, "the lock is not held"
        return self._descriptor

    def __enter__(self) -> Self:
        deadline = time.monotonic() + self._wait_s
        announced = False
        while True:
            try:
                return self._enter()
            except _InUse as busy:
                if time.monotonic() >= deadline:
                    raise
                if not announced:
                    self._tell(f"waiting up to {duration(self._wait_s)} for this machine: {busy.message}")
                    announced = True
            time.sleep(_WAITING_PAUSE_SECONDS)

    def _enter(self) -> Self:
        try:
            for step in (self._take, self._say, self._look_at_others):
                try:
                    step()
                except RequestError as error:
                    if self._use != "restoration" or isinstance(error, _InUse):
                        raise
                    self.notes.append(error.message)
        except BaseException:
            self._let_go()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._let_go()

    def _take(self) -> None:
        deadline = time.monotonic() + CLEARING_SECONDS
        while True:
            opened = _opened(self._path, self.notes)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = user_holder(self._status) or Holder(_locker(opened), os.geteuid())
                os.close(opened)
                self._wait_for(holder, deadline)
                continue
            if _is_still(self._path, opened):
                break
            os.close(opened)
        self._descriptor = opened
        _held_here.add(self._path)

    def _wait_for(self, holder: Holder, deadline: float) -> None:
        # An experiment that ended may have an agent or a guardian that still restores values: that takes a moment.
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
        holder = user_holder(self._status)
        # A user whose lock file was removed while they held it still has their status file.
        if holder is not None and holder.alive and holder.pid != os.getpid():
            self._refuse_or_pass_by(holder)
            return
        if os.geteuid() == 0 and (note := remove_anothers(self._status)):
            self.notes.append(note)
        write_status(self._status, self._use)
        self._has_said = True

    def _look_at_others(self) -> None:
        for holder in other_holders(self._status.parent):
            self._refuse_or_pass_by(holder)

    def _refuse_or_pass_by(self, holder: Holder) -> None:
        if self._use != "restoration" or (holder.uid == os.geteuid() and holder.use == "experiment"):
            raise _busy(holder, held=True)
        self.notes.append(f"this machine is in use: {holder}")

    def _let_go(self) -> None:
        if self._descriptor is None:
            return
        _held_here.discard(self._path)
        os.close(self._descriptor)
        self._descriptor = None
        # A child that inherited the lock still holds the machine, and the status stays true.
        if self._has_said and _is_free(self._path):
            self._status.unlink(missing_ok=True)
        self._has_said = False


class _InUse(RequestError):
    """The machine is in use, and that must not be disturbed."""


def lock_name(uid: int) -> str:
    """Return the file that is a user's lock."""
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
        hint="wait for it with --wait 10m, or interrupt it; run its command again to resume",
    )


def _opened(path: Path, notes: list[str]) -> int:
    # The lock file must always have been the user's own: a user who could open it could hold the lock. Root removes
    # what is something else. It is opened without O_CREAT first: with fs.protected_regular even root may not create
    # over another's file in a sticky directory (proc_sys_fs(5)).
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
            if _is_private(there):
                try:
                    descriptor = os.open(path, flags)
                except FileNotFoundError:
                    continue
                if _is_private(os.fstat(descriptor)):
                    return descriptor
                os.close(descriptor)
            elif os.geteuid() != 0:
                raise _unfit(path, f"it belongs to {user_name(there.st_uid)}")
            elif stat.S_ISREG(there.st_mode) and there.st_uid == 0:
                path.unlink(missing_ok=True)  # Others could open it.
            elif note := remove_anothers(path):
                notes.append(note)
    except FileNotFoundError as error:
        raise RequestError(
            f"cannot use the machine's lock: directory {path.parent} not found",
            hint=f"make it as root: mkdir -m 1777 {path.parent}",
        ) from error
    except OSError as error:
        raise _unfit(path, str(error.strerror)) from error
    raise _unfit(path, "it keeps changing")


def _is_private(status: os.stat_result) -> bool:
    mine = status.st_uid == os.geteuid() and status.st_nlink == 1
    return stat.S_ISREG(status.st_mode) and mine and not stat.S_IMODE(status.st_mode) & 0o077


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
    status = os.fstat(descriptor)
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return 0
    for words in map(str.split, lines):
        if len(words) > 5 and words[1] == "FLOCK" and words[5] == file and words[4].isdecimal():
            return int(words[4])
    return 0

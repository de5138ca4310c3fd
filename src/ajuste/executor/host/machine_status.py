"""Who has the machine, as each user who has it says in a file of their own that all users can read.

The files lie where all users can make files. One is believed only if the process that it names lives, began when it
says, and is its owner's. Nothing is opened but plain files, so that no link, pipe or device makes anybody wait.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, get_args

from ajuste.machine.files import user_name
from ajuste.machine.session import boot_id, started_ticks
from ajuste.model.error import RequestError

Use = Literal["experiment", "measurement", "restoration", "unknown"]

_NAME: Final = re.compile(r"ajuste(-[0-9]{1,10})?\.status")
_LONGEST = 4096
_OPEN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Holder:
    """Who has the machine. ``pid`` is 0 where it cannot be known, ``since`` when it was taken."""

    pid: int
    uid: int
    use: Use = "unknown"
    started: int = 0
    """In ticks since boot, as proc_pid_stat(5) has it; 0 where it is not known."""
    since: datetime | None = None

    @property
    def alive(self) -> bool:
        return self.pid == 0 or (Path(f"/proc/{self.pid}").exists() and self.started in (0, started_ticks(self.pid)))

    def __str__(self) -> str:
        who = f"process {self.pid}" if self.pid else "another process"
        whose = "" if self.uid == os.geteuid() else f" of {user_name(self.uid)}"
        return f"{who}{whose}{f', since {self.since:%Y-%m-%d %H:%M:%S}' if self.since else ''}"


def status_name(uid: int) -> str:
    """The file in which a user says so."""
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


def own_holder(path: Path) -> Holder | None:
    """Who said so in a file of this very user, in this boot; the process may have ended."""
    found = _read(path)
    return found if found is not None and found.uid == os.geteuid() else None


def other_holders(directory: Path) -> Iterator[Holder]:
    """Who of the other users has the machine, as far as it can be believed."""
    try:
        names = sorted(name for name in os.listdir(directory) if _NAME.fullmatch(name))  # noqa: PTH208 - names only
    except OSError:
        return
    for name in names:
        found = _read(directory / name)
        if found is None or found.uid == os.geteuid() or name != status_name(found.uid):
            continue
        if found.uid in _owners(found.pid) and started_ticks(found.pid) == found.started:
            yield found


def remove_anothers(path: Path) -> str:
    """As root: take away what is no plain file of root's, whatever it is, without opening it. Says what was done."""
    try:
        found = path.lstat()
    except OSError:
        return ""
    if stat.S_ISREG(found.st_mode) and found.st_uid == 0 and found.st_nlink == 1:
        return ""
    try:
        if stat.S_ISDIR(found.st_mode):
            path.rename(path.with_name(f"{path.name}.{secrets.token_hex(8)}"))
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise RequestError(
            f"{path} belongs to another user or program; cannot remove it: {error.strerror}",
            hint="remove it and try again",
        ) from error
    return f"removed {path}, which Ajuste had not made (it belonged to {user_name(found.st_uid)})"


def _owners(pid: int) -> set[int]:
    """The real and the effective user of a process."""
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
            found = os.fstat(descriptor)
            plain = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
            document = json.loads(os.pread(descriptor, _LONGEST, 0)) if plain else None
        finally:
            os.close(descriptor)
    except (OSError, ValueError, RecursionError):
        return None
    return _holder(document, found.st_uid) if isinstance(document, dict) else None


def _holder(document: dict[str, Any], uid: int) -> Holder | None:
    match document:
        case {"pid": int(pid), "started": int(started), "boot": str(boot), "use": str(use)} if (
            0 < pid < 2**31 and 0 < started < 2**63 and boot == boot_id() and use in get_args(Use)
        ):
            return Holder(pid, uid, use, started, _time(document.get("since")))  # type: ignore[arg-type]
    return None


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
        return found.astimezone() if found is not None and found.tzinfo else None
    except (ValueError, OverflowError, OSError):
        return None

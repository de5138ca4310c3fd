"""The ledger of a campaign: a file of JSON lines to which one may only add, each line sealed by the one after it."""

from __future__ import annotations

import errno
import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ajuste.machine.files import read_kept
from ajuste.model.campaign import CampaignEntry, CampaignEvent
from ajuste.model.error import RunError

LARGEST_BYTES: Final = 64 << 20


class CampaignLedger:
    """Reads all lines when it is made, and adds to them. A writer holds the campaign's lock."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.entries = _read(file)

    def add(self, event: CampaignEvent, **fields: Any) -> CampaignEntry:
        """One more line, on disk when this returns."""
        entry = CampaignEntry(
            number=len(self.entries),
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            event=event,
            previous=self.entries[-1].digest if self.entries else "",
            **fields,
        )
        entry = entry.model_copy(update={"digest": digest_of(entry)})
        line = f"{entry.model_dump_json(exclude_defaults=True)}\n".encode()
        is_new = not self.file.exists()
        descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        size = os.fstat(descriptor).st_size
        try:
            if os.write(descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.file))
            os.fsync(descriptor)
        except OSError:  # Half a line would be damage.
            os.ftruncate(descriptor, size)
            raise
        finally:
            os.close(descriptor)
        if is_new:
            _sync_directory(self.file.parent)
        self.entries = [*self.entries, entry]
        return entry


def digest_of(entry: CampaignEntry) -> str:
    """The SHA-256 of all of ``entry`` but its own digest; that of the line before is part of it."""
    text = entry.model_copy(update={"digest": ""}).model_dump_json(exclude_defaults=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _read(file: Path) -> list[CampaignEntry]:
    """All lines. Raises RunError for one that is not what was written."""
    try:
        if file.stat().st_size > LARGEST_BYTES:
            raise _damaged(file, "is larger than any ledger")
        content = read_kept(file)
    except FileNotFoundError:
        return []
    entries: list[CampaignEntry] = []
    *lines, rest = content.split(b"\n")
    if rest:  # It is written as one line, with its end.
        raise _damaged(file, f"line {len(lines) + 1} was cut off")
    for number, line in enumerate(lines):
        try:
            entry = CampaignEntry.model_validate_json(line)
        except ValidationError:
            raise _damaged(file, f"line {number + 1} is not an entry") from None
        previous = entries[-1].digest if entries else ""
        if (entry.number, entry.previous, entry.digest) != (number, previous, digest_of(entry)):
            raise _damaged(file, f"line {number + 1} was changed, or a line before it is missing")
        entries.append(entry)
    return entries


def _damaged(file: Path, why: str) -> RunError:
    return RunError(
        f"the ledger {file} is damaged: {why}",
        hint="begin a new campaign with ajuste campaign new; the verdicts of this one cannot be trusted",
    )


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

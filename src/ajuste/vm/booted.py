"""Machines that have booted, kept in the cache: under the virtual clock the next boot would come to the very same."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from ajuste.home import Home
from ajuste.model.event import Gate, Hello
from ajuste.ownership import make_directory
from ajuste.this_boot import boot_id
from ajuste.vm.command_line import Channels, Machine, command_line

MOST_BYTES = 2 << 30
"""All that are kept together; those that were not used for longest go first."""

_ANY_CHANNELS = Channels(plan=Path("plan"), console=Path("console"), events=Path("events"), monitor=0)


class Booted(BaseModel):
    """A machine at its gate. ``command_line`` is QEMU's, in words; ``size_bytes`` of the snapshot beside it."""

    model_config = ConfigDict(frozen=True)
    hello: Hello
    gate: Gate
    command_line: str
    size_bytes: int


def name_of(machine: Machine, kernel_sha256: str, initramfs_sha256: str) -> str:
    """Of all that a boot depends on: QEMU's arguments, with files by their content; QEMU by its file's size and time;
    and since when this machine has been up, because files that were not written out before a crash may be anything.
    """
    binary = machine.emulator.binary.stat()
    by_content = machine.model_copy(update={"kernel": Path(kernel_sha256), "initramfs": Path(initramfs_sha256)})
    depends_on = [
        *command_line(by_content, _ANY_CHANNELS, restored=False),
        *(machine.emulator.version, binary.st_size, binary.st_mtime_ns),
        boot_id(),
    ]
    return hashlib.sha256(json.dumps(depends_on).encode()).hexdigest()


def find(home: Home, name: str, snapshot: Path) -> Booted | None:
    """The machine of that name, its snapshot put at ``snapshot``, where it stays; ``None`` if there is none, and
    nothing is put there.
    """
    kept, record = _files(home, name)
    try:
        booted = Booted.model_validate_json(record.read_bytes())
        os.utime(kept)
        _link(kept, snapshot)
        if snapshot.stat().st_size == booted.size_bytes:
            return booted
    except (OSError, ValidationError):
        pass
    snapshot.unlink(missing_ok=True)
    return None


def keep(home: Home, name: str, booted: Booted, snapshot: Path) -> None:
    """Have it for next time, if there is room; nothing depends on that."""
    kept, record = _files(home, name)
    with contextlib.suppress(OSError):
        make_directory(kept.parent)
        with _replaced(kept) as new:
            _link(snapshot, new)
        with _replaced(record) as new:
            new.write_text(booted.model_dump_json())
        _make_room(kept.parent)


def _files(home: Home, name: str) -> tuple[Path, Path]:
    return home.booted / f"{name}.snapshot", home.booted / f"{name}.json"


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # Another file system.
        shutil.copyfile(source, target)


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """Where to put what is to be at ``path``, all at once."""
    new = path.with_suffix(f"{path.suffix}.{os.getpid()}.new")
    try:
        yield new
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _make_room(directory: Path) -> None:
    found = sorted(((path.stat(), path) for path in directory.glob("*.snapshot")), key=lambda one: -one[0].st_mtime)
    total = 0
    for status, path in found:
        total += status.st_blocks * 512
        if total > MOST_BYTES:
            path.with_suffix(".json").unlink(missing_ok=True)
            path.unlink(missing_ok=True)

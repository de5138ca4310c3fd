"""Machines that have booted, kept in the cache: under the virtual clock the next boot would come to the very same."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from ajuste.cache import SNAPSHOTS, make_room
from ajuste.checksum import open_kept, sealed, unsealed
from ajuste.home import Home
from ajuste.lock import holding
from ajuste.model.event import Gate, Hello
from ajuste.ownership import make_directory
from ajuste.vm.command_line import Channels, Machine, command_line
from ajuste.vm.snapshot import Snapshot

_FORMAT: Final = 2
_LONGEST_LINE: Final = 1 << 20
_ANY_CHANNELS = Channels(plan=Path("plan"), console=Path("console"), events=Path("events"), monitor=0)


class Booted(BaseModel):
    """A machine at its gate. ``command_line`` is QEMU's, in words; ``snapshot_sha256`` is of its snapshot, if it has
    one.
    """

    model_config = ConfigDict(frozen=True)
    hello: Hello
    gate: Gate
    command_line: str
    snapshot_sha256: str = ""


class Damaged(Exception):
    """What was kept of a machine is not what it was; it was dropped. The message says what is wrong with it."""


def name_of(machine: Machine, kernel_sha256: str, initramfs_sha256: str) -> str:
    """Of all that a boot depends on: QEMU's arguments, with files by their content; QEMU by its file's size and
    time.
    """
    binary = machine.emulator.binary.stat()
    by_content = machine.model_copy(update={"kernel": Path(kernel_sha256), "initramfs": Path(initramfs_sha256)})
    depends_on = [
        *command_line(by_content, _ANY_CHANNELS, restored=False),
        *(machine.emulator.version, binary.st_size, binary.st_mtime_ns),
        _FORMAT,
    ]
    return hashlib.sha256(json.dumps(depends_on).encode()).hexdigest()


def find(home: Home, name: str) -> tuple[Booted, Snapshot] | None:
    """The machine of that name with its snapshot, compared with its checksum; ``None`` if there is none. Raises Damaged
    for one that is not whole, which is there no longer then.
    """
    kept = _file(home, name)
    try:
        with open_kept(kept) as file:
            head = file.readline(_LONGEST_LINE) + file.readline(_LONGEST_LINE)
            booted = Booted.model_validate_json(unsealed(head))
            snapshot = Snapshot.of_file(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        drop(home, name)
        raise Damaged(error.strerror or str(error)) from error
    except ValueError as error:  # Of these is ValidationError.
        drop(home, name)
        raise Damaged("its first lines are not what they were") from error
    if snapshot.sha256 != booted.snapshot_sha256:
        snapshot.close()
        drop(home, name)
        raise Damaged("its SHA-256 is not the one that it was kept with")
    with contextlib.suppress(OSError):
        os.utime(kept)
    return booted, snapshot


def keep(home: Home, name: str, booted: Booted, snapshot: Snapshot) -> None:
    """Have it for next time, if there is room; nothing depends on that."""
    kept = _file(home, name)
    with contextlib.suppress(OSError):
        make_directory(kept.parent)
        drop(home, name)
        with _replaced(kept) as new, snapshot.open() as content, new.open("wb") as file:
            file.write(sealed(booted.model_dump_json()).encode())
            shutil.copyfileobj(content, file, 1 << 20)
        make_room(SNAPSHOTS, home)


def drop(home: Home, name: str) -> None:
    """Whatever is there of that name, as far as it can be removed."""
    kept = _file(home, name)
    try:
        kept.unlink(missing_ok=True)
    except OSError:
        shutil.rmtree(kept, ignore_errors=True)


def _file(home: Home, name: str) -> Path:
    """Two lines, what is known of the machine below its checksum; then its snapshot."""
    return home.booted / f"{name}.snapshot"


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """Where to put what is to be at ``path``, all at once. It is held meanwhile: what nobody holds is a leftover."""
    new = path.with_suffix(f"{path.suffix}.{os.getpid()}.new")
    try:
        new.touch()
        with holding(new):
            yield new
            new.replace(path)
    finally:
        new.unlink(missing_ok=True)

"""What files a cache entry has and what they hold, so that damage is noticed wherever they are read."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from ajuste.checksum import read_kept, sha256_of

NAME: Final = "files.json"
CHECKSUMS: Final = "checksums.json"

_SIZES: TypeAdapter[dict[str, int]] = TypeAdapter(dict[str, int])
_DIGESTS: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])


def write_inventory(directory: Path) -> None:
    """Record the size and the SHA-256 of every file below ``directory``; of a link, those of its own text."""
    files = {
        str(file.relative_to(directory)): file
        for file in sorted(directory.rglob("*"))
        if file.is_symlink() or file.is_file()
    }
    sizes = {name: file.lstat().st_size for name, file in files.items()}
    digests = {name: _digest(file) for name, file in files.items()}
    (directory / NAME).write_text(json.dumps(sizes, indent=0), encoding="utf-8")
    (directory / CHECKSUMS).write_text(json.dumps(digests, indent=0), encoding="utf-8")


def read_inventory(directory: Path) -> dict[str, int]:
    """The recorded size in bytes of every file, by its path within ``directory``. Empty where there is no record."""
    try:
        return _SIZES.validate_json(read_kept(directory / NAME))
    except (OSError, ValidationError):
        return {}


def read_checksums(directory: Path) -> dict[str, str]:
    """The recorded SHA-256 of every file, by its path within ``directory``. Empty where there is no record."""
    try:
        return _DIGESTS.validate_json(read_kept(directory / CHECKSUMS))
    except (OSError, ValidationError):
        return {}


def find_damage(directory: Path, read: Iterable[str] = ()) -> str | None:
    """What differs from the inventory, in words, or None. All files are looked at, and those named ``read``, because
    they are about to be used.
    """
    sizes, digests = read_inventory(directory), read_checksums(directory)
    for name, record in ((NAME, sizes), (CHECKSUMS, digests)):
        if not record:
            return f"{name} is missing or unreadable"
    for name, size_bytes in sizes.items():
        try:
            found = (directory / name).lstat()
        except OSError:
            return f"{name} is missing"
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
            return f"{name} is no file"
        if found.st_size != size_bytes:
            return f"{name} has {found.st_size} bytes instead of {size_bytes}"
    return next((damage for name in read if (damage := differs(directory, name, digests))), None)


def find_any_damage(directory: Path) -> str | None:
    """As ``find_damage``; every file is read."""
    return find_damage(directory, read_checksums(directory))


def differs(directory: Path, name: str, digests: Mapping[str, str]) -> str | None:
    """What is wrong with one file by its checksum, in words, or None."""
    if name not in digests:
        return f"{CHECKSUMS} does not have {name}"
    try:
        found = _digest(directory / name)
    except OSError as error:
        return f"{name} cannot be read: {error.strerror}"
    return None if found == digests[name] else f"{name} is not what it was (its SHA-256 differs)"


def put_in_place(entry: Path, place: Path, aside: Path) -> None:
    """Let ``entry`` be what is at ``place``; what was there, whatever it is, goes to ``aside``."""
    if os.path.lexists(place):
        place.rename(aside)
    entry.rename(place)


def _digest(file: Path) -> str:
    if file.is_symlink():
        return hashlib.sha256(os.fsencode(file.readlink())).hexdigest()
    return sha256_of(file)

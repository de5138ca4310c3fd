"""What files a cache entry has, so that damage is noticed."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

NAME = "files.json"

_SIZES: TypeAdapter[dict[str, int]] = TypeAdapter(dict[str, int])


def write_inventory(directory: Path) -> None:
    """Record the size of every file below ``directory``."""
    sizes = {
        str(file.relative_to(directory)): file.lstat().st_size
        for file in sorted(directory.rglob("*"))
        if file.is_symlink() or file.is_file()
    }
    (directory / NAME).write_text(json.dumps(sizes, indent=0), encoding="utf-8")


def read_inventory(directory: Path) -> dict[str, int]:
    """The recorded size in bytes of every file, by its path within ``directory``. Empty where there is no record."""
    try:
        return _SIZES.validate_json((directory / NAME).read_bytes())
    except (OSError, ValidationError):
        return {}


def find_damage(directory: Path) -> str | None:
    """What differs from the inventory, in words, or None. Only sizes are looked at."""
    sizes = read_inventory(directory)
    if not sizes:
        return f"{NAME} is missing or unreadable"
    for name, size_bytes in sizes.items():
        try:
            found = (directory / name).lstat().st_size
        except OSError:
            return f"{name} is missing"
        if found != size_bytes:
            return f"{name} has {found} bytes instead of {size_bytes}"
    return None

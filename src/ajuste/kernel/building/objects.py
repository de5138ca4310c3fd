"""The objects of a tree by the options they were made with: some are put aside, so that the way back from an option
that touches every file compiles nothing.

Make compiles a file again when an option changes that the file reads; the names of those options are in its
``.NAME.o.cmd``. Source: scripts/basic/fixdep.c of Linux.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ajuste.kernel.building.built import digest_of
from ajuste.kernel.building.configuration import Options, read_options
from ajuste.kernel.building.workspace import Workspace, damage_of, unsettle

_WIDE: Final = 1 / 3
_MOST_ASIDE: Final = 3
# What building on takes beside a copy.
_LEFT_FREE_BYTES: Final = 4_000_000_000

_MADE_WITH: Final = "include/config/auto.conf"
# NUMA, and up to Linux 5.13 numa.h.
_READ: Final = re.compile(rb"\(wildcard include/config/([\w/]+)")


@dataclass(frozen=True)
class OptionChange:
    """Of ``objects`` that there are, make will compile ``affected`` again for other options."""

    objects: int
    affected: int

    @property
    def wide(self) -> bool:
        """Whether it is much of the whole."""
        return self.affected > _WIDE * self.objects

    @property
    def kept(self) -> int:
        return self.objects - self.affected


def turn_to(tree: Workspace, options: Options) -> OptionChange:
    """Let ``tree.objects``, whose ``.config`` has ``options``, be those that need the least compiling for them; where
    that is much all the same, what they are now stays aside.
    """
    change = _change(tree.objects, options)
    if change.objects and not change.wide:
        return change
    aside = {objects: _change(objects, options) for objects in tree.objects_aside()}
    for nearest in sorted(aside, key=lambda objects: aside[objects].kept, reverse=True):
        if aside[nearest].kept <= change.kept:
            break
        if damage_of(nearest):
            shutil.rmtree(nearest)
            continue
        _exchange(tree, nearest)
        change = aside[nearest]
        break
    if change.wide:
        _copy_aside(tree)
        tree.set_complete(False)
    for objects in sorted(tree.objects_aside(), key=lambda path: path.stat().st_mtime)[:-_MOST_ASIDE]:
        shutil.rmtree(objects)
    return change


def _change(objects: Path, options: Options) -> OptionChange:
    before = _made_with(objects)
    if before is None:
        return OptionChange(0, 0)
    now = _plain(options)
    changed = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
    commands = list(objects.rglob(".*.o.cmd"))
    affected = sum(not changed.isdisjoint(_read_by(command)) for command in commands) if changed else 0
    return OptionChange(len(commands), affected)


def _made_with(objects: Path) -> dict[str, str] | None:
    """The options of the last make there, if there was one."""
    try:
        return _plain(read_options((objects / _MADE_WITH).read_text(encoding="utf-8")))
    except OSError:
        return None


def _plain(options: Options) -> dict[str, str]:
    """As make reads them: without those that are off, and without quotation marks."""
    return {name: value.strip('"') for name, value in options.items() if value != "n"}


def _read_by(command: Path) -> set[str]:
    names = {name.decode() for name in _READ.findall(command.read_bytes())}
    return names | {name.replace("/", "_").upper() for name in names if name.islower()}


def _exchange(tree: Workspace, other: Path) -> None:
    """Put the objects aside and take others for them. Between the two steps both are aside."""
    config = tree.objects.joinpath(".config").read_bytes()
    place = _place_aside(tree)
    if place is None or place == other:
        shutil.rmtree(tree.objects)
    else:
        _put(tree.objects, place)
    other.rename(tree.objects)
    # What is so already keeps its time: make has nothing to do then.
    if tree.objects.joinpath(".config").read_bytes() != config:
        tree.objects.joinpath(".config").write_bytes(config)


def _copy_aside(tree: Workspace) -> None:
    """Not where the disk has no room for it: then the way back is compiled again."""
    place = _place_aside(tree)
    size = sum(file.lstat().st_blocks for file in tree.objects.rglob("*")) * 512
    if place is None or shutil.disk_usage(tree.directory).free < size + _LEFT_FREE_BYTES:
        return
    temporary = tree.directory / "copying"
    shutil.rmtree(temporary, ignore_errors=True)
    command = ["cp", "--archive", "--reflink=auto", "--", str(tree.objects), str(temporary)]
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        shutil.rmtree(temporary, ignore_errors=True)
        return
    _put(temporary, place)


def _put(objects: Path, place: Path) -> None:
    """Instead of what is there."""
    place.parent.mkdir(exist_ok=True)
    if place.exists():
        shutil.rmtree(place)
    unsettle(objects)  # It was configured since it was recorded.
    objects.rename(place)
    os.utime(place)


def _place_aside(tree: Workspace) -> Path | None:
    """Where objects with the options of those in use belong; none if nothing was made yet."""
    options = _made_with(tree.objects)
    if options is None:
        return None
    return tree.aside / digest_of([f"{name}={value}" for name, value in sorted(options.items())])[:16]

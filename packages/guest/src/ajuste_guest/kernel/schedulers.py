"""Programs of schedulers written in BPF (sched_ext) that were built elsewhere, and which kernels can load them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import WITH_SCHEDULERS
from ajuste.model.caller import open_found, open_given
from ajuste.model.error import Place, RequestError

ELF: Final = b"\x7fELF"
LOADING_OPTIONS: Final = ("SCHED_CLASS_EXT", "DEBUG_INFO_BTF")
"""The options that a kernel needs to load one."""

_TUNABLE: Final = "sched_ext"


@dataclass(frozen=True)
class OwnScheduler:
    """A program that was built elsewhere."""

    name: str
    file: Path
    sha256: str


def read_schedulers(
    files: Sequence[Path], within: Path | None = None, *, cached: bool = False
) -> tuple[OwnScheduler, ...]:
    """Read programs of schedulers, each of which has its file's name unless ``NAME=FILE`` says another: those of the
    cache if ``cached``, or else those that a person names. Raises RequestError for any other file, and for one outside
    of the directory ``within``, to which names are relative.
    """
    schedulers: dict[str, OwnScheduler] = {}
    # What can be a level of the tunable, and nothing else; loaded only where it is needed.
    names = catalogue().find_tunable(_TUNABLE).also if files else ""
    for option in files:
        place = Place(f"--scheduler {option}")
        name, _, path = str(option).partition("=")
        if path and re.fullmatch(names, name):
            file = Path(path).expanduser()
        else:
            name, file = option.name, option
        if within is not None:
            file = path_within(within, str(file), place)
        if not re.fullmatch(names, name):
            raise RequestError(
                "wrong file name; expected scx_ and lower-case letters, such as scx_bpfland",
                hint=f"name it: --scheduler scx_mine={option}",
                place=place,
            )
        if twin := schedulers.get(name):
            raise RequestError(
                f"{twin.file} has the same name; expected different names",
                place=place,
                hint=f"name one of them, such as --scheduler {name}_2={file}",
            )
        try:
            with (open_found if cached else open_given)(file) as content:
                is_elf = content.peek(len(ELF)).startswith(ELF)
                schedulers[name] = OwnScheduler(name, file, hashlib.file_digest(content, "sha256").hexdigest())
        except OSError as error:
            raise RequestError(str(error.strerror), place=place) from None
        if not is_elf:
            raise RequestError("not an ELF file; expected a scheduler's program", place=place)
    return tuple(schedulers.values())


def path_within(directory: Path, name: str, place: Place | None) -> Path:
    """Return the path ``name`` in ``directory``. Raises RequestError if it leads out of it."""
    file = directory / name
    if ".." in PurePosixPath(name).parts or not file.resolve().is_relative_to(directory.resolve()):
        raise RequestError(f'"{name}" is outside of {directory}; expected a relative path without ".."', place=place)
    return file


def require_loadable(
    schedulers: Sequence[OwnScheduler], options: Mapping[str, str], kernel: str = "the kernel"
) -> None:
    """Raise RequestError where a ``kernel`` with these options cannot load its schedulers."""
    lacking = [f"{name}=y" for name in LOADING_OPTIONS if options.get(name) != "y"]
    if schedulers and lacking:
        raise RequestError(
            f"{kernel} cannot load {schedulers[0].name}: it lacks {' and '.join(lacking)}",
            hint=f"use debian:6.18, or build with --config {WITH_SCHEDULERS} from Linux 6.12 or later",
        )

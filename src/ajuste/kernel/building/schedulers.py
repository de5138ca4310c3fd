"""Schedulers written in BPF (sched_ext): those that come with a kernel's sources, built for that very kernel, and
programs of them that were built elsewhere.

Source: tools/sched_ext/README.md of Linux 6.12.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from ajuste.catalogue.loader import catalogue
from ajuste.catalogue.programs import install_hint
from ajuste.kernel.building.built import SourceOrigin
from ajuste.kernel.building.configuration import Options
from ajuste.kernel.building.make import Workspace, jobs_here, run_make_in
from ajuste.kernel.spec import WITH_SCHEDULERS
from ajuste.machine.home import Home
from ajuste.model.caller import open_found, open_given
from ajuste.model.error import Place, RequestError, RunError

EXAMPLES: Final = "tools/sched_ext"
"""Directory of the examples in a kernel's sources."""

_BPFTOOL: Final = "tools/bpf/bpftool"
_PROGRAM: Final = ".bpf.c"
_OPTIONS: Final = ("SCHED_CLASS_EXT", "DEBUG_INFO_BTF")

# Debian's programs of each version of LLVM, and those without a version: 16 and older do not build them.
_SUFFIXES: Final = ("-21", "-20", "-19", "-18", "-17", "")
_PROGRAMS: Final = ("clang", "ld.lld", "llvm-ar", "llvm-strip")
_TUNABLE: Final = "sched_ext"
ELF: Final = b"\x7fELF"
_PACKAGES: Final = ("clang-19", "llvm-19", "lld-19")

Programs = Mapping[str, tuple[Path, str]]
"""Programs by name, each with what strips it."""


@dataclass(frozen=True)
class Llvm:
    """An LLVM of this machine. ``suffix`` is what the names of its programs end in; ``words`` say which it is."""

    suffix: str
    words: str


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


def require_loadable(schedulers: Sequence[OwnScheduler], options: Options, kernel: str = "the kernel") -> None:
    """Raise RequestError where a ``kernel`` with these options cannot load its schedulers."""
    lacking = [f"{name}=y" for name in _OPTIONS if options.get(name) != "y"]
    if schedulers and lacking:
        raise RequestError(
            f"{kernel} cannot load {schedulers[0].name}: it lacks {' and '.join(lacking)}",
            hint=f"use debian:6.18, or build with --config {WITH_SCHEDULERS} from Linux 6.12 or later",
        )


def source_schedulers(config: str, origin: SourceOrigin) -> tuple[str, ...]:
    """Return the names of the schedulers to build with ``config``: all that the sources have."""
    if config != WITH_SCHEDULERS:
        return ()
    paths = map(PurePosixPath, origin.manifest)
    return tuple(sorted(path.name.removesuffix(_PROGRAM) for path in paths if path.match(f"{EXAMPLES}/*{_PROGRAM}")))


def require_llvm() -> Llvm:
    """Return the newest complete LLVM here. Raises RequestError that names the packages."""
    for suffix in _SUFFIXES:
        if all(shutil.which(f"{program}{suffix}") for program in _PROGRAMS):
            process = subprocess.run([f"clang{suffix}", "--version"], capture_output=True, text=True, check=False)
            return Llvm(suffix, (process.stdout.splitlines() or ["clang"])[0])
    raise RequestError(
        f"{WITH_SCHEDULERS} builds schedulers, which requires {', '.join(_PROGRAMS)} of LLVM 17 or later",
        hint=install_hint(*_PACKAGES),
    )


def build_schedulers(tree: Workspace, home: Home, names: Sequence[str], options: Options, llvm: Llvm) -> Programs:
    """Build the programs of ``names`` for the kernel that was built in ``tree``, none for a kernel that cannot load
    them. Raises RunError with the compiler's first error.
    """
    if any(options.get(name) != "y" for name in _OPTIONS):
        return {}
    out = tree.objects / "schedulers"
    tools = out / "bpftool"
    tools.mkdir(parents=True, exist_ok=True)
    common = f"LLVM={llvm.suffix or 1}"

    def make(folder: str, *words: str) -> None:
        run_make_in(tree.source / folder, tree, home, [common, *words], "the schedulers do not build", jobs=jobs_here())

    make(_BPFTOOL, f"OUTPUT={tools}/", "bootstrap")
    btf = f"VMLINUX_BTF={tree.objects / 'vmlinux'}"
    make(EXAMPLES, f"O={out}", btf, f"BPFTOOL={tools / 'bootstrap' / 'bpftool'}", *names)
    return {name: (out / "build" / "bin" / name, f"llvm-strip{llvm.suffix}") for name in names}


def keep_schedulers(programs: Programs, folder: Path) -> None:
    """Put ``programs`` into ``folder``, without debugging data. Raises RunError for a file that is no program."""
    folder.mkdir()
    for name, (program, strip) in programs.items():
        command = [strip, "-o", str(folder / name), str(program)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise RunError(f"cannot store {program} with the kernel: {done.stderr.strip()[:300]}")

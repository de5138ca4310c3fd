"""Schedulers written in BPF (sched_ext) that come with a kernel's sources, built for that very kernel.

Source: tools/sched_ext/README.md of Linux 6.12.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from ajuste.catalogue.programs import install_hint
from ajuste.kernel.spec import WITH_SCHEDULERS
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste_guest.kernel.schedulers import LOADING_OPTIONS
from ajuste_kernels.building.built import SourceOrigin
from ajuste_kernels.building.configuration import Options
from ajuste_kernels.building.make import Workspace, jobs_here, run_make_in

EXAMPLES: Final = "tools/sched_ext"
"""Directory of the examples in a kernel's sources."""

_BPFTOOL: Final = "tools/bpf/bpftool"
_PROGRAM: Final = ".bpf.c"

# Debian's programs of each version of LLVM, and those without a version: 16 and older do not build them.
_SUFFIXES: Final = ("-21", "-20", "-19", "-18", "-17", "")
_PROGRAMS: Final = ("clang", "ld.lld", "llvm-ar", "llvm-strip")
_PACKAGES: Final = ("clang-19", "llvm-19", "lld-19")

Programs = Mapping[str, tuple[Path, str]]
"""Programs by name, each with what strips it."""


@dataclass(frozen=True)
class Llvm:
    """An LLVM of this machine. ``suffix`` is what the names of its programs end in; ``words`` say which it is."""

    suffix: str
    words: str


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
    if any(options.get(name) != "y" for name in LOADING_OPTIONS):
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

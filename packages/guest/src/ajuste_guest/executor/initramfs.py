"""The initramfs of a guest: all that it ever has, in one archive that is the same to the byte for the same input."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path, PurePosixPath

from pydantic import Field

from ajuste.catalogue.programs import install_hint
from ajuste.kernel.spec import BUILT
from ajuste.machine.files import file_sha256
from ajuste.machine.home import AGENT, SERVICE, WORKLOADS, is_library, native_program
from ajuste.model.base import BaseModel
from ajuste.model.caller import require_given
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage
from ajuste_guest.executor.root import GuestRoot
from ajuste_guest.executor.tree import (
    FileTree,
    FindThere,
    Regular,
    check_self_contained,
    find_interpreters,
    is_script,
    write_archive,
)
from ajuste_guest.kernel.config import kernel_options

EVENT_PORT = 0x4A0
"""The I/O port of QEMU's isa-debugcon through which the agent speaks."""

LARGEST_STUDY_FILE_BYTES = 64 << 20
LARGEST_STUDY_BYTES = 256 << 20

_DEEPEST_SCRIPT = 4


class Initramfs(BaseModel):
    """An archive on this disk. ``sha256`` is of its content."""

    path: Path
    sha256: str
    size_bytes: int

    @property
    def least_memory_mib(self) -> int:
        """Return the memory that a guest needs: for the archive, its unpacked copy and a kernel."""
        return 2 * (self.size_bytes >> 20) + 128


def build_initramfs(files: GuestFiles, kernel: KernelImage, out: Path, *, quiet_gate: bool) -> Initramfs:
    """Write the initramfs for ``kernel`` to ``out``: the agent as ``/init``, the bundled workloads, ``files`` with
    what they need.

    ``quiet_gate`` has the guest sleep at its gate (see docs/explanation/determinism.md). Not compressed: unpacking
    costs more emulated instructions than reading. Raises RequestError for files that are missing, unsuitable or too
    large.
    """
    root = files.root
    tree = FileTree(root.has) if root else FileTree()
    find = root.find if root else _nowhere
    tree.add("/init", Regular(native_program(AGENT), 0o755))
    tree.add(f"/ajuste/bin/{WORKLOADS}", Regular(native_program(WORKLOADS), 0o755))
    if files.services:
        tree.add(f"/ajuste/bin/{SERVICE}", Regular(native_program(SERVICE), 0o755))
    for program in files.programs:
        _add_program(tree, program, files.packages, find)
    _add_study_files(tree, files.study_files, find)
    for scheduler in files.schedulers:
        program = scheduler_file(kernel, scheduler)
        tree.add(f"/ajuste/schedulers/{scheduler}", Regular(program, 0o755))
        _add_needs(tree, program, _nowhere, wanted_by=str(program), depth=0)
    if files.schedulers and kernel.config and kernel_options(kernel).get("IKCONFIG_PROC") != "y":
        # Where libbpf looks for options that a BPF program asks for; without them it does not load.
        tree.add(f"/boot/config-{kernel.release}", Regular(kernel.config))
    from ajuste_guest.executor.module import modules_for  # Reads ELF files: slow to load, and hosts need it not.

    modules = modules_for(files.modules, kernel)
    for module in modules:
        tree.add(str(module.path), Regular(module.content))
    bundled = {f"/lib/modules/ajuste/{file.name}": file for file in files.bundled_modules}
    for place, file in bundled.items():
        tree.add(place, Regular(file))
    lines = (*(module.line for module in modules), *bundled)
    boot = {"version": 1, "modules": lines, "event_port": EVENT_PORT, "gate": True, "quiet_gate": quiet_gate}
    tree.add("/ajuste/boot.json", Regular(json.dumps(boot, separators=(",", ":")).encode() + b"\n"))
    with out.open("wb") as archive:
        write_archive(tree, archive)
        if root is not None:
            # Linux unpacks one archive after the other.
            with root.path.open("rb") as content:
                shutil.copyfileobj(content, archive, 1 << 20)
    return Initramfs(path=out, sha256=file_sha256(out), size_bytes=out.stat().st_size)


def _nowhere(_: str) -> None:
    """Find no program: a guest without packages has only what is put into it."""


def _add_program(tree: FileTree, program: Path, packages: dict[str, str], find: FindThere) -> None:
    if not program.is_absolute():
        raise RequestError(f"program {str(program)!r}: expected an absolute path")
    if not program.is_file():
        package = packages.get(program.name)
        raise RequestError(
            f"program {program} not found on this machine",
            hint=install_hint(package) if package else "install it, or change the command",
        )
    if not is_library(program) and not os.access(program, os.X_OK):
        raise RequestError(f"{program} is not executable", hint=f"make it executable: chmod +x {program}")
    _require_given(program.resolve())
    _add_loadable(tree, program, find, wanted_by=str(program), depth=0)


def _require_given(file: Path) -> None:
    try:
        require_given(file)
    except OSError as error:
        raise RequestError(f"cannot read {file}: {error.strerror}", hint="check its path and permissions") from None


def _add_loadable(tree: FileTree, program: Path, find: FindThere, *, wanted_by: str, depth: int) -> None:
    check_self_contained(program, wanted_by)
    tree.add_from_host(program)
    _add_needs(tree, program, find, wanted_by=wanted_by, depth=depth)


def _add_needs(tree: FileTree, program: Path, find: FindThere, *, wanted_by: str, depth: int) -> None:
    if depth > _DEEPEST_SCRIPT:
        raise RequestError(
            f"{wanted_by}: too many scripts interpret each other; Linux supports at most {_DEEPEST_SCRIPT}"
        )
    interpreters = find_interpreters(program, find)
    for interpreter in interpreters:
        _add_loadable(tree, interpreter, find, wanted_by=wanted_by, depth=depth + 1)
    if interpreters or is_script(program):
        return
    from ajuste_guest.executor.tree import needed_by

    needed = needed_by(program)
    for file in needed.files:
        tree.add_from_host(file)
    for link, target in needed.links:
        tree.add_link(link, target)


def _add_study_files(tree: FileTree, study_files: dict[str, Path], find: FindThere) -> None:
    total_bytes = 0
    for name, source in sorted(study_files.items()):
        path = PurePosixPath(name)
        if not name or path.is_absolute() or ".." in path.parts or str(path) != name or not name.isprintable():
            raise RequestError(f"file {name!r} of the study: expected a relative path such as data/input.txt")
        size_bytes, executable = _check_study_file(name, source)
        total_bytes += size_bytes
        if total_bytes > LARGEST_STUDY_BYTES:
            raise RequestError(
                f"the study's files are too large; at most {LARGEST_STUDY_BYTES >> 20} MiB in total are supported"
            )
        real = source.resolve()
        _require_given(real)
        tree.add(f"/study/{name}", Regular(real, 0o755 if executable else 0o644))
        if executable:
            _add_needs(tree, source, find, wanted_by=str(source), depth=0)


def _check_study_file(name: str, source: Path) -> tuple[int, bool]:
    try:
        status = source.stat()
    except OSError as error:
        raise RequestError(
            f"cannot read the study's file {name} ({source}): {error.strerror}", hint="check its path and permissions"
        ) from error
    if not stat.S_ISREG(status.st_mode) or not os.access(source, os.R_OK):
        raise RequestError(f"the study's file {name} ({source}): expected a regular file that you can read")
    if status.st_size > LARGEST_STUDY_FILE_BYTES:
        raise RequestError(
            f"the study's file {name} has {status.st_size >> 20} MiB; "
            f"at most {LARGEST_STUDY_FILE_BYTES >> 20} MiB are supported"
        )
    return status.st_size, bool(status.st_mode & 0o111)


# The files of this machine that a guest gets.


class GuestFiles(BaseModel):
    """``programs`` are absolute paths on this machine; the guest has them, with the libraries they need, at the same
    paths. ``study_files`` (name relative to ``/study`` → file of this machine) keep their execute permission.
    ``modules`` are names of kernel modules that are loaded, with those they need, before anything else is done; a name
    may be followed by parameters: ``null_blk memory_backed=1 gb=1``. ``bundled_modules`` are Ajuste's modules, built
    for the very kernel, as files ``NAME.ko`` of this machine; they are loaded after those.
    ``schedulers`` are names of BPF schedulers (sched_ext) that were built with the kernel. With ``services`` the guest
    has the program that starts and stops them.

    ``packages`` names the Debian package of a program (file name → package) for the error about a missing one.
    ``root`` has the files of Debian packages, which are there before anything of this machine.
    """

    programs: tuple[Path, ...] = ()
    study_files: dict[str, Path] = Field(default_factory=dict)
    modules: tuple[str, ...] = ()
    bundled_modules: tuple[Path, ...] = ()
    schedulers: tuple[str, ...] = ()
    services: bool = False
    packages: dict[str, str] = Field(default_factory=dict)
    root: GuestRoot | None = None


# The program of a BPF scheduler (sched_ext) that was built for a kernel.


def how_to_build(spec: str) -> str:
    """Return the command that builds a kernel with its schedulers, under the requested name, if any."""
    kind, _, name = spec.partition(":")
    return f"ajuste kernel build --source debian:6.12 --config lab-ext --name {name if kind == BUILT else 'ext'}"


def scheduler_file(kernel: KernelImage, name: str) -> Path:
    """Return the file of ``name``. Raises RequestError, with those that it has, for a kernel built without it."""
    if kernel.schedulers is None:
        if kernel_options(kernel).get("SCHED_CLASS_EXT") == "y":
            raise RequestError(f"program of {name} not found", hint=f"name its file: --scheduler DIR/{name}")
        raise RequestError(
            f"{kernel.spec} was built without BPF schedulers (sched_ext), which {name} requires",
            hint=how_to_build(kernel.spec),
        )
    program = kernel.schedulers / name
    if not program.is_file():
        known = ", ".join(sorted(file.name for file in kernel.schedulers.iterdir()))
        raise RequestError(f"{kernel.spec}: scheduler {name} not found; expected one of {known}")
    return program

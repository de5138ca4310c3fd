"""Kernel modules of Ajuste's own, built for the kernel of a guest. They are never loaded on this machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ajuste.kernel.building.make import REPRODUCIBLE, first_error
from ajuste.kernel.building.toolchain import compiler
from ajuste.kernel.cache import find_any_damage, keeping_in, put_in_place, write_inventory
from ajuste.kernel.headers import Headers, fetch_headers
from ajuste.machine.cache import MODULES, make_room
from ajuste.machine.home import Home
from ajuste.machine.installation import module_source
from ajuste.machine.lock import hold, locked
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.kernel import KernelImage
from ajuste.model.wording import Say
from ajuste.study.resolved import Machine, ResolvedConfiguration, ResolvedStudy

_PROGRAMS: Final = {"make": "make", "gcc": "gcc", "ld": "binutils", "strip": "binutils", "setpriv": "util-linux"}


def build_module(name: str, image: KernelImage, home: Home, say: Say = lambda _: None) -> Path:
    """The module ``name`` for ``image``, as a file ``NAME.ko``; built only if these sources, headers and compiler have
    not built it before.

    Raises RequestError where a program or the headers are missing, RunError where it does not build.
    """
    sources = module_source(name)
    _require_programs(name)
    root = home.cache / "modules"
    module = root / _key(sources, fetch_headers(image, home, say)) / f"{name}.ko"
    with keeping_in(root, "kernel modules"):
        if _is_whole(module.parent):
            return module
        with locked(root / ".lock", waiting=lambda: say("waiting for another ajuste that is building a module")):
            if not _is_whole(module.parent):
                say(f"building the module {name} for {image.release}")
                _build(name, sources, fetch_headers(image, home, say, to_build=True), module)
                hold(module.parent)
                make_room(MODULES, home)
    return module


def _is_whole(entry: Path) -> bool:
    """Whether there is such an entry; it is held then."""
    try:
        hold(entry)
    except OSError:
        return False
    return find_any_damage(entry) is None


def _require_programs(name: str) -> None:
    lacking = {program: package for program, package in _PROGRAMS.items() if shutil.which(program) is None}
    if lacking:
        packages = " ".join(sorted(set(lacking.values())))
        raise RequestError(
            f"building the kernel module {name} requires {', '.join(sorted(lacking))}, not found on this machine",
            hint=f"install them: apt install {packages} (in Ajuste's source tree: setup/system kernel)",
        )


def _key(sources: Path, headers: Headers) -> str:
    digest = hashlib.sha256()
    for part in (*headers.packages, compiler()):
        digest.update(part.encode() + b"\0")
    for file in sorted(sources.iterdir()):
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _build(name: str, sources: Path, headers: Headers, module: Path) -> None:
    """In a directory of its own: make writes beside the sources."""
    root = module.parent.parent
    for leftover in root.glob(".building-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=root) as directory:
        tree = Path(directory) / "source"
        shutil.copytree(sources, tree)
        command = ["make", "-C", str(headers.directory), f"M={tree}", "CC=gcc", "modules"]
        said = _run(command)
        built = tree / f"{name}.ko"
        if said.returncode or not built.is_file():
            raise _failure(name, headers, said.stdout.replace(f"{tree}/", ""))
        # What is left does not depend on the directory that it was built in.
        stripped = _run(["strip", "--strip-debug", str(built)])
        if stripped.returncode:
            raise RunError(f"could not strip the module {name}: {stripped.stdout.strip()[:300]}")
        entry = Path(directory) / "entry"
        entry.mkdir()
        built.rename(entry / built.name)
        write_inventory(entry)
        put_in_place(entry, module.parent, aside=Path(directory) / "damaged")


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return subprocess.run(
        ["setpriv", "--pdeathsig", "TERM", "--", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        check=False,
        env={**kept, **REPRODUCIBLE, "LC_ALL": "C"},
    )


def _failure(name: str, headers: Headers, said: str) -> RunError:
    shown = first_error(said.splitlines()) or ["make gave no reason"]
    below = "\n".join(shown[1:])
    if "unrecognized command-line option" in shown[0]:
        below = f"the kernel was built with a newer compiler than this machine's, {compiler().partition(';')[0]}"
    return RunError(
        f"the module {name} does not build with {headers.packages[0]}: {shown[0]}",
        hint=below if below.strip() else None,
    )


# Which kernel modules of Ajuste's own the machines of a study need, and their building before anything is measured.


def built_modules(
    resolved: ResolvedStudy, images: Mapping[str, KernelImage], home: Home, say: Say
) -> dict[Machine, tuple[Path, ...]]:
    """The files of the modules by the machine that loads them; a machine that needs none is left out.

    Raises RequestError where one cannot be built on this machine, with how to do without, and RunError where it does
    not build.
    """
    found: dict[Machine, dict[str, Path]] = {}
    for configuration in resolved.configurations:
        for name in configuration.modules:
            of_machine = found.setdefault(configuration.machine, {})
            if name not in of_machine:
                of_machine[name] = _built(name, images[configuration.kernel], configuration, resolved, home, say)
    return {machine: tuple(files.values()) for machine, files in found.items()}


def _built(
    name: str, image: KernelImage, wanting: ResolvedConfiguration, resolved: ResolvedStudy, home: Home, say: Say
) -> Path:

    try:
        return build_module(name, image, home, say)
    except AjusteError as failure:
        hints = [failure.hint, _without(wanting, resolved)]
        raise type(failure)(failure.message, hint="\n".join(filter(None, hints)) or None) from failure


def _without(wanting: ResolvedConfiguration, resolved: ResolvedStudy) -> str | None:
    """How to leave out the level that needs a module, if it is one level that does."""
    for factor in resolved.factors:
        level = wanting.configuration.levels[factor.name]
        needing = {c.configuration.levels[factor.name] for c in resolved.configurations if c.modules}
        if needing == {level} and level != factor.baseline:
            return f'or leave out the level that needs it: --without "{factor.name}={level}"'
    return None

"""Shared libraries that a fetched program needs and this machine lacks: they are fetched and kept beside it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from debian.deb822 import PkgRelation
from debian.debian_support import Version

from ajuste.kernel.apt import Apt, Package
from ajuste.kernel.unpack import unpack
from ajuste.model.error import RunError

# Never replaced: the program is loaded by the machine's own, which must fit.
_C_LIBRARY = {"libc6", "libc-bin"}


def run_with_libraries(
    command: Sequence[str | Path], libraries: Path | None, timeout_s: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a program with ``libraries`` before the machine's own, and capture what it prints."""
    environment = dict(os.environ, LC_ALL="C.UTF-8")
    if libraries:
        environment["LD_LIBRARY_PATH"] = str(libraries)
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env=environment,
        timeout=timeout_s,
    )


def missing_libraries(program: Path, libraries: Path | None) -> list[str]:
    """The names of shared libraries that are neither on this machine nor in ``libraries``. Source: ldd(1)."""
    listing = run_with_libraries(["ldd", program], libraries).stdout
    return sorted(set(re.findall(r"^\s*(\S+) => not found", listing, re.MULTILINE)))


def add_missing_libraries(
    program: Path,
    into: Path,
    package: Package,
    apt: Apt,
    suites: tuple[str, ...],
    temporary: Path,
    say: Callable[[str], None],
) -> None:
    """Put what ``program`` of ``package`` lacks into the directory ``into``, which is made only if there is something.

    Looks in the libraries that the package depends on, then in those that these depend on, and so on. Raises
    RunError where something is still missing in the end.
    """
    missing = missing_libraries(program, None)
    level, seen = [package], {package.name, *_C_LIBRARY}
    tree = temporary / "libraries"
    while missing:
        level = _dependencies(level, seen, apt, suites)
        if not level:
            raise RunError(f"{package} needs libraries that this machine lacks: {', '.join(missing)}")
        seen.update(p.name for p in level)
        say(f"downloading libraries of {package.name} ({sum(p.size_bytes for p in level) / 1e6:.0f} MB)")
        into.mkdir(exist_ok=True)
        fetched = temporary / f"packages-{len(seen)}"
        fetched.mkdir()
        unpack(apt.download(level, fetched), tree)
        while found := [file for name in missing if (file := _find(tree, name))]:
            for file in found:
                shutil.copy(file, into / file.name)
            missing = missing_libraries(program, into)


def _dependencies(packages: Iterable[Package], seen: set[str], apt: Apt, suites: tuple[str, ...]) -> list[Package]:
    """The newest versions of the libraries that ``packages`` depend on, without those ``seen``."""
    names = {
        alternative["name"]
        for package in packages
        for alternatives in PkgRelation.parse_relations(package.depends)
        for alternative in alternatives
        if alternative["name"].startswith("lib")
    }
    newest: dict[str, Package] = {}
    for found in apt.packages(names - seen):
        known = newest.get(found.name)
        if set(found.suites).intersection(suites) and (
            known is None or Version(known.version) < Version(found.version)
        ):
            newest[found.name] = found
    return [newest[name] for name in sorted(newest)]


def _find(tree: Path, soname: str) -> Path | None:
    return next((f for f in sorted(tree.rglob(soname)) if f.is_file()), None)

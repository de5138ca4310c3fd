"""The native programs, and the sources of kernel modules: where they are on this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ajuste.model.error import RequestError

AGENT = "ajuste-agent"
WORKLOADS = "ajuste-workloads"
_MODULES = {"ajuste_linpack": "linpack"}

_PACKAGE = Path(__file__).parents[1]
_TREE = _PACKAGE.parent.parent
_BUILT = _TREE / "target" / "x86_64-unknown-linux-gnu" / "release"


def native_program(name: str, environment: Mapping[str, str] = os.environ) -> Path:
    """The absolute path of a native program.

    Looked for in the directory ``AJUSTE_NATIVE`` (and there only, if it is set), in the installed package, and in the
    build directory of a source tree. Raises RequestError with the build command where it is in none of them.
    """
    chosen = environment.get("AJUSTE_NATIVE")
    places = [Path(chosen).expanduser().absolute()] if chosen else [_PACKAGE / "bin", _BUILT]
    for place in places:
        program = place / name
        if program.is_file() and os.access(program, os.X_OK):
            return program
    searched = ", ".join(str(place) for place in places)
    raise RequestError(
        f"program {name} not found in {searched}",
        hint="set AJUSTE_NATIVE to its directory" if chosen else "build it with: cargo build --release",
    )


def module_source(name: str) -> Path:
    """The directory with the sources of a kernel module of Ajuste's own. Raises RequestError where it is missing."""
    directory = _TREE / "native" / "module" / _MODULES[name]
    if not (directory / "Kbuild").is_file():
        raise RequestError(
            f"sources of the kernel module {name} not found in {directory}",
            hint="run Ajuste from its source tree (make setup)",
        )
    return directory


# The version of Ajuste that is running.


def ajuste_version() -> str:
    """As installed; ``unknown`` where the package runs from a bare tree."""
    try:
        return version("ajuste")
    except PackageNotFoundError:
        return "unknown"


# Programs of this machine, and the shared libraries that they load by themselves.


def is_library(file: Path) -> bool:
    """Such as ``libc.so.6``: loaded, not started, and so not executable as a rule."""
    return ".so" in file.suffixes


def find_program(name: str) -> str | None:
    """The absolute path of a program on this machine, as ``shutil.which``; of a library that is named by its own."""
    file = Path(name)
    if file.is_absolute() and is_library(file):
        return name if file.is_file() else None
    return shutil.which(name)

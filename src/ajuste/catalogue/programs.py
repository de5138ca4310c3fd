"""Commands that install what is missing on this machine, in the words of its own package manager."""

from __future__ import annotations

import os
import platform
import shutil
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path

from ajuste.model.base import ClosedModel
from ajuste.model.error import RequestError, did_you_mean, nearest_names
from ajuste.model.plugins import plugins


class _Manager(ClosedModel):
    systems: tuple[str, ...]
    install: str
    search: str


class _Table(ClosedModel):
    managers: dict[str, _Manager]
    packages: dict[str, dict[str, str]]
    changes: dict[str, tuple[str, ...]]


def install_command(packages: Iterable[str]) -> str:
    """Return the command that installs ``packages``, given by their names in Debian."""
    names = list(dict.fromkeys(packages))
    manager = _manager()
    if manager is None:
        return f"what Debian has as {' '.join(names)}"
    table = _table()
    here = (table.packages.get(name, {}).get(manager, name) for name in names)
    return table.managers[manager].install.format(packages=" ".join(dict.fromkeys(here)))


def install_hint(*packages: str) -> str:
    """Return a hint for packages, given by their names in Debian."""
    return f"install {'it' if len(packages) == 1 else 'them'}: {install_command(packages)}"


def changed_by(program: str) -> tuple[str, ...]:
    """Return what ``program`` changes: patterns of tunables' names, or ``place:KIND``."""
    return _table().changes.get(program, ())


def require_git() -> None:
    """Raise RequestError where git is not installed."""
    if shutil.which("git") is None:
        raise RequestError("git was not found", hint=install_hint("git"))


def with_benchmark_programs(text: str) -> str:
    """Return ``text``, on what is not found, with the line that adds benchmark programs if they are not installed."""
    if "programs" in plugins("catalogues"):
        return text
    added = "pip install 'ajuste[programs]' adds workloads and studies of benchmark programs"
    return f"{text} {added}" if text.endswith("?") else f"{text}; {added}"


def search_hint(program: str, workloads: Iterable[str] = ()) -> str:
    """Return a hint for a program whose package is unknown: a similar name of a program here or of ``workloads``, or
    how to find its package.
    """
    if "/" in program:
        return "correct its path, or install it"
    known = sorted({*workloads, *_programs_here()})
    if near := did_you_mean(nearest_names(program, known, most=2, likeness=80, parts=False)):
        return with_benchmark_programs(near)
    manager = _manager()
    if manager is None:
        return with_benchmark_programs("install it, or change the command")
    search = _table().managers[manager].search.format(program=program)
    return with_benchmark_programs(f"install it; find its package with `{search}`")


def _programs_here() -> set[str]:
    names: set[str] = set()
    for directory in map(Path, os.get_exec_path()):
        with suppress(OSError):
            names |= {path.name for path in directory.iterdir()}
    return names


def _manager() -> str | None:
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        return None
    named = [system.get("ID", ""), *system.get("ID_LIKE", "").split()]
    managers = _table().managers
    return next(
        (name for system_name in named for name, manager in managers.items() if system_name in manager.systems), None
    )


@cache
def _table() -> _Table:
    return _Table.model_validate(tomllib.loads((files("ajuste.catalogue") / "programs.toml").read_text()))

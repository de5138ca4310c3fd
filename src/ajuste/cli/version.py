"""``ajuste --version``: the version, and the facts about an installation for a bug report."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import typer

from ajuste.machine.files import file_sha256
from ajuste.machine.home import (
    AGENT,
    EXTRAS,
    PACKAGE,
    TREE,
    WORKLOADS,
    ajuste_version,
    home,
    in_tree,
    native_program,
    recorded,
    way,
)
from ajuste.model.error import AjusteError
from ajuste.model.plugins import added
from ajuste.model.wording import visible_line

_LONGEST_S = 10


def show_version(*, verbose: bool, as_json: bool) -> None:
    """Print the version, with ``verbose`` also all facts about the installation."""
    if as_json:
        document = facts() if verbose else {"ajuste": ajuste_version()}
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    typer.echo(f"ajuste {ajuste_version()}")
    if verbose:
        for name, value in facts().items():
            if name != "ajuste":
                typer.echo(f"{name + ':':<11} {visible_line(_line(value))}")


def facts() -> dict[str, Any]:
    """Return the facts that decide how this installation behaves; an unknown one is ``None`` or a ``problem``."""
    build = recorded()
    commit = build.get("commit") or (_first_line("git", "-C", str(TREE), "rev-parse", "HEAD") if in_tree() else None)
    return {
        "ajuste": ajuste_version(),
        "commit": commit,
        "modified": build.get("modified"),
        "installed": {"by": way(), "in": str(PACKAGE)},
        "python": {"version": platform.python_version(), "program": sys.executable},
        "system": _system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "agent": _program(AGENT, build),
        "workloads": _program(WORKLOADS, build),
        "qemu": _qemu(),
        "paths": _paths(),
        "plug-ins": added(),
        "extras": {extra: all(find_spec(module) for module in modules) for extra, modules in EXTRAS.items()},
    }


def _program(name: str, build: dict[str, Any]) -> dict[str, Any]:
    try:
        program = native_program(name)
        sha256 = file_sha256(program)
    except (AjusteError, OSError) as error:
        return {"problem": str(error)}
    expected = (build.get("programs") or {}).get(name)
    comparison = {"as_built": sha256 == expected} if expected else {}
    return {"path": str(program), "sha256": sha256, "version": _first_line(str(program), "--version"), **comparison}


def _qemu() -> dict[str, str | None] | None:
    # Only the installed QEMU: Ajuste fetches a newer one where a study needs it.
    program = shutil.which(f"qemu-system-{platform.machine()}")
    if program is None:
        return None
    match = re.search(r"version ([0-9][0-9.]*)", _first_line(program, "--version") or "")
    return {"path": program, "version": match[1] if match else None}


def _paths() -> dict[str, str]:
    try:
        place = home()
    except AjusteError as error:
        return {"problem": str(error)}
    return {"data": str(place.data), "cache": str(place.cache), "state": str(place.state)}


def _system() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _first_line(*command: str) -> str | None:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_LONGEST_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.partition("\n")[0].strip() or None


def _line(value: Any) -> str:
    if isinstance(value, tuple):
        return " and ".join(value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_line(inner)}" for name, inner in value.items())
    return {None: "unknown", True: "yes", False: "no"}.get(value, str(value))

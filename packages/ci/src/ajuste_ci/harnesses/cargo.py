"""Programs with benchmarks that Cargo built.

Source: https://doc.rust-lang.org/cargo/reference/external-tools.html#json-messages
"""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ajuste.study.job import Argv
from ajuste_ci.harnesses.base import ADDED, BuiltProject
from ajuste_ci.harnesses.clock import add_clock

BUILD: Final[Argv] = ("cargo", "bench", "--no-run")
_MESSAGES: Final = "--message-format=json"


@dataclass(frozen=True)
class CargoProgram:
    """A program with benchmarks: ``name`` of its target, the ``directory`` of its package relative to the project, and
    the ``files`` that it needs, relative to the project.
    """

    name: str
    directory: PurePosixPath
    files: tuple[str, ...]
    place: Path

    @property
    def command(self) -> str:
        """The program, as a command in the directory of its package."""
        return f"{ADDED}/{self.name}"


def cargo_programs(built: BuiltProject) -> tuple[CargoProgram, ...]:
    """Return the programs of ``cargo bench``, copied to a place that has the same name in each revision. Raises
    RunError.
    """
    command = built.build if built.build[:2] == BUILD[:2] else BUILD
    words = [word for word in command[2:] if not word.startswith("--message-format")]
    messages = built.output((*command[:2], _MESSAGES, *words), built.directory)
    return tuple(_programs(built, messages))


def read_artifacts(messages: str) -> Iterator[dict[str, Any]]:
    """Yield the messages on programs with benchmarks."""
    for line in messages.splitlines():
        if not line.startswith("{"):
            continue
        message = json.loads(line)
        is_program = message.get("reason") == "compiler-artifact" and message.get("executable")
        if is_program and ("bench" in message["target"]["kind"] or message["profile"].get("test")):
            yield message


def _programs(built: BuiltProject, messages: str) -> Iterator[CargoProgram]:
    for message in read_artifacts(messages):
        package = Path(message["manifest_path"]).parent
        if not package.is_relative_to(built.directory.resolve()):
            continue
        relative = PurePosixPath(package.relative_to(built.directory.resolve()))
        added = built.add_directory(package)
        kind, name = message["target"]["kind"][0], message["target"]["name"]
        # A library and a program can have the same name.
        stem = name if kind == "bench" else f"{name}-{kind}"
        copy = added / stem
        shutil.copy2(message["executable"], copy)
        files = (str(relative / ADDED / stem), str(relative / add_clock(package, built.output)))
        yield CargoProgram(stem, relative, files, copy)


def depends_on(project: Path, *crates: str) -> bool:
    """Return whether a package of the project has one of ``crates`` among its dependencies for development."""
    return any(
        _has(manifest, crates) for manifest in sorted({*project.glob("Cargo.toml"), *project.glob("*/Cargo.toml")})
    )


def _has(manifest: Path, crates: tuple[str, ...]) -> bool:
    try:
        document = tomllib.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    tables = [document.get("dev-dependencies"), document.get("dependencies")]
    # A crate may have another name here: divan = { package = "codspeed-divan-compat" }.
    return any(crate in table for table in tables if isinstance(table, dict) for crate in crates)


def target_filter(line: str, ending: str = ": benchmark") -> str | None:
    """Return the id in a line such as ``fib 10: benchmark``."""
    return line.removesuffix(ending) if line.endswith(ending) else None

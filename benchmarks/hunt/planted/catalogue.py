"""The planted bugs, from their bug.toml files, and their programs."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from ajuste.cli.saving import study_text
from ajuste.model.base import ClosedModel

_HERE: Final = Path(__file__).parent
_FIXED: Final = "-DFIXED"
GOAL: Final = r"^(hung|exit != 0|dmesg: .+|[a-z][a-z.-]* > [0-9.]+)$"

_Words = Annotated[tuple[str, ...], Field(min_length=1)]


class PlantedBug(ClosedModel):
    """A program with a bug, and a twin without. ``build`` are commands, in which {flags} stands for the definitions,
    {directory} for a copy of the bug's directory where they run, {out} for where the program goes, {headers} for
    the headers of the guest's kernel, and {release} for its release. ``command`` is relative to {out}.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z-]*$")]
    wrong: str = Field(min_length=1)
    kind: Literal["user", "module"]
    depth: int = Field(ge=1)
    """The number of unlucky moments that have to coincide."""
    cpus: int = Field(ge=1, le=4)
    goal: Annotated[str, StringConstraints(pattern=GOAL)]
    """The goal of ``ajuste hunt --until``."""
    kernel: str = "debian:6.12"
    timeout_s: float = Field(gt=0)
    """A program that has not ended by then, by the guest's clock, is hung."""
    build: Annotated[tuple[_Words, ...], Field(min_length=1)]
    command: _Words
    modules: tuple[str, ...] = ()
    """Modules that the guest has to load: its kernel is path:VMLINUZ,modules={out}/modules."""
    guest_only: str = ""
    """The reason why it is not run on this machine, if so."""

    @property
    def directory(self) -> Path:
        return _HERE / self.name


def read_bug(file: Path) -> PlantedBug:
    """Return the bug of a bug.toml. Raises ValidationError where a field is missing, unknown or wrong."""
    return PlantedBug.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))


def planted_bugs() -> list[PlantedBug]:
    """Return all planted bugs by name."""
    return [read_bug(file) for file in sorted(_HERE.glob("*/bug.toml"))]


def build_bug(
    bug: PlantedBug, out: Path, *, fixed: bool = False, define: Sequence[str] = (), headers: Path | None = None
) -> Path:
    """Build the bug, or with ``fixed`` its twin, into ``out`` and return the program. ``define`` are more definitions,
    such as PAUSE_US=100. Raises ValueError without ``headers`` for a module, CalledProcessError if it does not build.
    """
    if headers is None and any("{headers}" in word for command in bug.build for word in command):
        raise ValueError(f"{bug.name}: building a module requires the headers of {bug.kernel}")
    release = headers.name.removeprefix("linux-headers-") if headers else ""
    flags = [*([_FIXED] if fixed else ()), *(f"-D{definition}" for definition in define)]
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / bug.name
        shutil.copytree(bug.directory, directory)
        for shared in (*_HERE.glob("*.h"), *_HERE.glob("*.c")):
            shutil.copy(shared, scratch)
        places = {
            "{out}": str(out.absolute()),
            "{directory}": str(directory),
            "{headers}": str(headers),
            "{release}": release,
        }
        if bug.modules:
            (out / "modules" / release).mkdir(parents=True, exist_ok=True)
        for command in bug.build:
            subprocess.run(
                list(_substituted(command, flags, places)),
                cwd=directory,
                check=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
    return out / bug.command[0]


def module_study(bug: PlantedBug, out: Path, vmlinuz: Path) -> Path:
    """Write a study of the module that was built into ``out`` for the kernel ``vmlinuz``, and return its file."""
    document = {
        "schema": 1,
        "name": bug.name,
        "factor": [],
        "workload": {"command": list(bug.command), "files": [bug.name], "timeout_s": bug.timeout_s},
        "target": {
            "kernel": f"path:{vmlinuz},modules={out.absolute() / 'modules'}",
            "cpus": bug.cpus,
            "modules": list(bug.modules),
        },
        "analysis": {"metrics": ["elapsed"]},
    }
    file = out / f"{bug.name}.toml"
    file.write_text(study_text(document), encoding="utf-8")
    return file


def _substituted(command: Sequence[str], flags: Sequence[str], places: dict[str, str]) -> Iterator[str]:
    for word in command:
        if word == "{flags}":
            yield from flags
            continue
        filled = word.replace("{flags}", " ".join(flags))
        for place, path in places.items():
            filled = filled.replace(place, path)
        yield filled

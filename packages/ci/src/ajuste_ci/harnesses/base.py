"""A harness, its benchmarks, and the project that was built with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final

from ajuste.model.error import RunError
from ajuste.study.job import Argv

# Directory of a revision with what the gate adds to it.
ADDED: Final = ".ajuste"

Output = Callable[[Sequence[str], Path], str]
"""Runs a command in a directory as the user, and returns its standard output. Raises RunError."""


@dataclass(frozen=True)
class BuiltProject:
    """A revision's project in ``directory``, built by ``build``; ``output`` runs a program of it on this machine.

    ``label`` names the revision, ``give`` makes a file the user's. ``list_file`` is the file of commands, where the
    harness has one.
    """

    directory: Path
    build: Argv
    output: Output
    label: str
    give: Callable[[Path], None]
    list_file: str = ""

    def add_directory(self, directory: Path) -> Path:
        """Return the directory for added files in ``directory``, which belongs to the user."""
        added = directory / ADDED
        if not added.exists():
            added.mkdir()
            self.give(added)
        return added

    def lacks(self, what: str, hint: str) -> RunError:
        """Return the error of a revision without ``what``."""
        return RunError(f"{what} not found in {self.label}", hint=hint, of_candidate=True)

    def rejects(self, what: str, hint: str) -> RunError:
        """Return the error of a revision with something that cannot be measured."""
        return RunError(f"{self.label}: {what}", hint=hint, of_candidate=True)


@dataclass(frozen=True)
class HarnessBenchmark:
    """A benchmark: its ``id``, its ``target`` in the project (a program or a package), and the ``directory`` it runs
    in, relative to the project. It needs these ``files``, relative to the project.
    """

    id: str
    target: str
    directory: PurePosixPath
    files: tuple[str, ...]


class Harness(ABC):
    """A program that runs the benchmarks of a project.

    ``build`` is the default command; empty where nothing is built. The instructions of a benchmark are those of a long
    run less those of a short one, which differ by a fixed number of iterations only; ``repeats`` is False where a
    benchmark is a whole command.
    """

    name: ClassVar[str]
    build: ClassVar[Argv]
    repeats: ClassVar[bool] = True
    packages: ClassVar[tuple[str, ...]] = ()
    finest: ClassVar[int] = 0
    """Smallest level of iterations."""
    most: ClassVar[int] = 20
    """Largest level of iterations."""

    @abstractmethod
    def benchmarks(self, built: BuiltProject) -> tuple[HarnessBenchmark, ...]:
        """Return the benchmarks of a built revision, and add what they need to it. Raises RunError."""

    @abstractmethod
    def command(self, benchmark: HarnessBenchmark, level: int) -> Argv:
        """Return the command that runs ``benchmark``, in its directory; each level has about twice the iterations."""

    @abstractmethod
    def is_used(self, project: Path) -> bool:
        """Return whether the project in that directory seems to have benchmarks of this harness."""

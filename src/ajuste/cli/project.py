"""The project that a command is about: its file, its repository and its benchmarks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli.showing import command_line
from ajuste.machine.home import home
from ajuste.model.error import AjusteError, RequestError
from ajuste.model.wording import shortened, visible
from ajuste.run.gate.bench import BenchRequest
from ajuste.run.gate.checkout import ProjectRepository
from ajuste.run.testbed import RunOptions
from ajuste.study.project import HINT, PROJECT_FILE, BenchmarkTable, read_project

MOST_ERROR_LINES: Final = 40
"""Of one benchmark that could not be measured."""

Benchmarks = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="The benchmarks to measure (default: all).")
]
FreshTrials = Annotated[bool, typer.Option("--fresh", help="Measure again; do not use the store's trials of a guest.")]


def bench_request(names: list[str] | None, *, fresh: bool, quiet: bool) -> BenchRequest:
    """What is to be measured of the project around the caller's directory. Raises RequestError."""
    repository = ProjectRepository.around(Path.cwd())
    project = read_project(_project_file(repository.top))
    return BenchRequest(
        project,
        project.chosen(tuple(names or ())),
        repository,
        catalogue(),
        RunOptions(home()),
        command_line(),
        _say_failed,
        fresh=fresh,
        quiet=quiet,
    )


def _project_file(top: Path) -> Path:
    """That of the directory of the caller, or of the nearest one above it in the repository. Raises RequestError."""
    here = Path.cwd()
    for directory in (here, *here.parents):
        if (directory / PROJECT_FILE).exists():
            return Path(PROJECT_FILE) if directory == here else directory / PROJECT_FILE
        if directory == top or directory.resolve() == top.resolve():
            break
    raise RequestError(f"{PROJECT_FILE} not found in {here} or above it in the repository", hint=f"write one: {HINT}")


def _say_failed(benchmark: BenchmarkTable, failure: AjusteError) -> None:
    """At once, with all that is known; the others go on."""
    place = f"{failure.place}: " if failure.place else ""
    lines = [shortened(line) for line in f"{place}{failure.message}".splitlines()[:MOST_ERROR_LINES]]
    hint = f"\n  {failure.hint}" if failure.hint else ""
    print(visible(f"ajuste: benchmark {benchmark.name}: " + "\n".join(lines) + hint), file=sys.stderr)

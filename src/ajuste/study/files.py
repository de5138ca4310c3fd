"""The study's own files: beside the study file, taken along under ``/study``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ajuste.study.job import Argv
from ajuste.study.location import KeyPath as Keys
from ajuste.study.problem import Problem
from ajuste.study.schema import Study


def study_files(study: Study) -> dict[str, Path]:
    """The files a study brings, by their name relative to the study file: those listed and its own programs."""
    directory = study_directory(study)
    return {name: directory / name for name in dict.fromkeys(name for _, name in _named(study))}


def study_directory(study: Study) -> Path:
    """Where its file is; where Ajuste was called, if it has none."""
    return study.source.directory if study.source else Path()


def is_own(program: str) -> bool:
    """Whether a program is a file of the study: it has a slash and is not absolute, as a shell would have it."""
    return "/" in program and not program.startswith("/")


def own_name(name: str) -> str:
    """``./job`` and ``job`` are one name."""
    return str(PurePosixPath(name))


def check_files(study: Study) -> list[Problem]:
    """Files that are not there, or not below the study file's directory."""
    directory = study_directory(study)
    problems = []
    for path, name in _named(study):
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or name == ".":
            problems.append(
                Problem(path, f'"{name}" is outside the directory of the study; expected a relative path without ".."')
            )
        elif not (directory / name).is_file():
            problems.append(Problem(path, f'file "{directory / name}" not found'))
        elif not (directory / name).resolve().is_relative_to(directory.resolve()):
            problems.append(
                Problem(path, f'"{name}" leads outside the directory of the study; expected a file below it')
            )
    for index, variant in enumerate(study.workload.variants):
        path = ("workload", "variant", index, "directory")
        if variant.directory is not None and (problem := _problem_of_directory(directory, variant.directory)):
            problems.append(Problem(path, problem))
    return problems


def _problem_of_directory(directory: Path, name: str) -> str:
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        return f'"{name}" is outside the directory of the study; expected a relative path without ".."'
    if not (directory / name).is_dir():
        return f'directory "{directory / name}" not found'
    if not (directory / name).resolve().is_relative_to(directory.resolve()):
        return f'"{name}" leads outside the directory of the study; expected a directory below it'
    return ""


def _named(study: Study) -> Iterator[tuple[Keys, str]]:
    for index, name in enumerate(study.workload.files):
        yield ("workload", "files", index), own_name(name)
    workload = study.workload
    for place, service in enumerate(workload.services):
        for index, name in enumerate(service.files):
            yield ("workload", "service", place, "files", index), own_name(name)
    commands: list[tuple[Keys, Argv | None]] = [
        (("workload", "command"), workload.command),
        *((("workload", "variant", n, "command"), variant.command) for n, variant in enumerate(workload.variants)),
        *((("workload", "background", n, "command"), load.command) for n, load in enumerate(workload.background)),
        *(
            (("workload", "service", n, field), own)
            for n, service in enumerate(workload.services)
            for field in ("command", "ready", "stop", "data")
            if isinstance(own := getattr(service, field), tuple)
        ),
        (("workload", "setup"), workload.setup),
        (("workload", "prepare"), workload.prepare),
        (("workload", "cleanup"), workload.cleanup),
    ]
    for path, command in commands:
        if command and is_own(command[0]):
            yield (*path, 0), own_name(command[0])

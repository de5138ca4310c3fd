"""The studies that Ajuste has itself, and which file a name stands for."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from ajuste.catalogue.programs import with_benchmark_programs
from ajuste.model.error import RequestError
from ajuste.model.plugins import add_problem, folders
from ajuste.study.problem import nearest

_FOLDER: Final = "studies"


@dataclass(frozen=True)
class BuiltinStudy:
    """A study that Ajuste has itself; ``path`` is its file."""

    name: str
    title: str
    question: str
    path: Path


def builtin_studies() -> list[BuiltinStudy]:
    """Return all builtin studies, by name."""
    documents = ((path, tomllib.loads(path.read_text(encoding="utf-8"))) for path in builtin_files(_FOLDER).values())
    return [
        BuiltinStudy(document["name"], document.get("title", ""), document.get("question", ""), path)
        for path, document in documents
    ]


def builtin_files(folder: str) -> dict[str, Path]:
    """Return the files in that folder of the catalogue, and in those of plug-ins, by the name that each has."""
    files_by_name: dict[str, Path] = {}
    for place in (files("ajuste.catalogue") / folder, *folders(folder)):
        for path in sorted(Path(str(place)).glob("*.toml")):
            if files_by_name.setdefault(path.stem, path) is not path:
                add_problem(f"{path}: {path.stem} is in another catalogue: rename it")
    return dict(sorted(files_by_name.items()))


def find_study(name_or_path: str) -> Path:
    """Return the file of a built-in study, or the file itself. Raises RequestError with the nearest names.

    Whatever ends in ``.toml`` or has a slash is a file; a built-in name comes before a file of the same name.
    """
    hint = with_benchmark_programs("list the built-in studies with `ajuste studies`")
    return find_file(name_or_path, _FOLDER, "study", hint)


def find_file(name_or_path: str, folder: str, what: str, hint: str) -> Path:
    """Find the file that a name stands for, as ``find_study`` does, among all that the catalogue has in ``folder``."""
    known = builtin_files(folder)
    if name_or_path in known:
        return known[name_or_path]
    path = Path(name_or_path)
    if path.is_file():
        return path
    if path.suffix == ".toml" or "/" in name_or_path:
        raise RequestError(f"{what} file {name_or_path} not found", hint=hint)
    near = nearest(name_or_path, list(known)) or f"; expected one of {', '.join(known)}, or a file"
    raise RequestError(f'{what} "{name_or_path}" not found{near}', hint=hint)

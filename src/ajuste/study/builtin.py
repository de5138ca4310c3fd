"""The studies that Ajuste has itself, and which file a name stands for."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ajuste.model.error import RequestError
from ajuste.study.problem import nearest


@dataclass(frozen=True)
class BuiltinStudy:
    """``path`` is its file."""

    name: str
    title: str
    question: str
    path: Path


def builtin_studies() -> list[BuiltinStudy]:
    """All of them, by name."""
    folder = Path(str(files("ajuste.catalogue"))) / "studies"
    return [_read_builtin(path) for path in sorted(folder.glob("*.toml"))]


def find_study(name_or_path: str) -> Path:
    """The file of the built-in study of that name, or the file itself. Raises RequestError with the nearest names.

    Whatever ends in ``.toml`` or has a slash is a file; a built-in name comes before a file of the same name.
    """
    known = {study.name: study.path for study in builtin_studies()}
    if name_or_path in known:
        return known[name_or_path]
    path = Path(name_or_path)
    if path.is_file():
        return path
    if path.suffix == ".toml" or "/" in name_or_path:
        raise RequestError(
            f"study file {name_or_path} not found", hint="list the built-in studies with `ajuste studies`"
        )
    near = nearest(name_or_path, list(known)) or f"; expected one of {', '.join(known)}, or a file"
    raise RequestError(f'study "{name_or_path}" not found{near}', hint="list the studies with `ajuste studies`")


def _read_builtin(path: Path) -> BuiltinStudy:
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return BuiltinStudy(document["name"], document.get("title", ""), document.get("question", ""), path)

"""The studies that come with Ajuste, one TOML file each."""

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
    folder = Path(str(files("ajuste"))) / "studies"
    return [_read(path) for path in sorted(folder.glob("*.toml"))]


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
        raise RequestError(f"there is no study file {name_or_path}", hint="`ajuste studies` lists the built-in ones")
    near = nearest(name_or_path, list(known)) or f"; expected one of {', '.join(known)}, or a file"
    raise RequestError(
        f'there is no study "{name_or_path}"{near}', hint="`ajuste studies` lists them with their questions"
    )


def _read(path: Path) -> BuiltinStudy:
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return BuiltinStudy(document["name"], document.get("title", ""), document.get("question", ""), path)

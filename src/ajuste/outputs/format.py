"""Formats of files, and JSON documents of other programs, looked into without believing anything."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.outputs.collector import LOOKED_AT, utf8

Parser = Callable[[str], dict[str, float]]
"""From the standard output of a program to its metrics. Raises ParseError."""

_WHOLE: Final = "give one complete JSON document"


class DocumentNode:
    """A value in a document, with its path, so that each error names its place."""

    def __init__(self, value: Any, file: Path, path: str = "") -> None:
        self.value = value
        self._file = file
        self._path = path

    @property
    def place(self) -> Place:
        return Place(self._file, field=self._path or None)

    def wrong(self, expected: str) -> RequestError:
        """Return the error for an unexpected value."""
        text = json.dumps(self.value, ensure_ascii=True, default=str)
        return RequestError(f"expected {expected}, found {text[:60]}{'…' if len(text) > 60 else ''}", place=self.place)

    def get(self, name: str) -> DocumentNode | None:
        """Return a member of an object, ``None`` if it is missing or null."""
        members = self._object()
        path = f"{self._path}.{name}" if self._path else name
        return DocumentNode(members[name], self._file, path) if members.get(name) is not None else None

    def need(self, name: str) -> DocumentNode:
        """Return a required member."""
        member = self.get(name)
        if member is None:
            raise RequestError(f"{name} is required", place=self.place)
        return member

    def items(self) -> list[DocumentNode]:
        """Return the elements of an array."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return [DocumentNode(value, self._file, f"{self._path}[{index}]") for index, value in enumerate(self.value)]

    def members(self) -> list[tuple[str, DocumentNode]]:
        """Return the members of an object, in order."""
        path = f"{self._path}." if self._path else ""
        return [(name, DocumentNode(value, self._file, path + name)) for name, value in self._object().items()]

    def number(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.wrong("a number")
        try:
            return float(self.value)
        except OverflowError:
            raise self.wrong("a smaller number") from None

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("a text")
        return utf8(self.value)

    def _object(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return self.value


def parse_document(text: str, file: Path) -> DocumentNode:
    """Parse the one JSON document in ``text``. Raises RequestError with the line of the mistake."""
    try:
        return DocumentNode(json.loads(text), file)
    except json.JSONDecodeError as error:
        raise RequestError(
            f"not valid JSON: {error.msg} (column {error.colno})", place=Place(file, error.lineno), hint=_WHOLE
        ) from None
    except (RecursionError, ValueError) as error:
        raise RequestError(f"not valid JSON: {str(error)[:80]}", place=Place(file), hint=_WHOLE) from None


@dataclass(frozen=True)
class ResultSource:
    """A file: its content, the name of its configuration if it names none itself, and the number of runs behind each
    of its means where the person said it.
    """

    text: str
    name: str
    file: Path
    runs: int | None = None


@dataclass(frozen=True)
class TextFormat:
    """``recognise`` tells from the text whether a file is of this format, ``read`` raises RequestError. A format that
    is ``around`` others' output is asked before them. ``reads`` says in Markdown what is read, once for each name.
    """

    name: str
    title: str
    recognise: Callable[[str], bool]
    read: Callable[[ResultSource], MeasuredTable]
    around: bool = False
    reads: str = ""


@dataclass(frozen=True)
class DocumentFormat:
    """As ``TextFormat``, for one JSON document."""

    name: str
    title: str
    recognise: Callable[[DocumentNode], bool]
    read: Callable[[DocumentNode, str, Path], MeasuredTable]
    reads: str = ""


def in_beginning(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    """Return what recognises a text by a pattern in its beginning."""
    return lambda text: pattern.search(text[:LOOKED_AT]) is not None


def lists(name: str, field: str) -> Callable[[DocumentNode], bool]:
    """Return what recognises a document whose member ``name`` is a list of objects that have ``field``."""

    def recognise(document: DocumentNode) -> bool:
        rows = document.value.get(name) if isinstance(document.value, dict) else None
        return isinstance(rows, list) and all(isinstance(row, dict) and field in row for row in rows)

    return recognise


def require_runs(runs: int | None, file: Path) -> None:
    """Raise RequestError for a number of runs that no summary can have."""
    if runs is not None and runs < 2:
        raise RequestError(f"--runs {runs}: expected at least 2", place=Place(file))

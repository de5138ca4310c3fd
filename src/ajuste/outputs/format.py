"""Formats of files: what a reader in ``outputs/programs`` gives as its ``TEXTS`` and ``DOCUMENTS``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.outputs.document import DocumentNode


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
    is ``around`` others' output is asked before them.
    """

    name: str
    title: str
    recognise: Callable[[str], bool]
    read: Callable[[ResultSource], MeasuredTable]
    around: bool = False


@dataclass(frozen=True)
class DocumentFormat:
    """As ``TextFormat``, for one JSON document."""

    name: str
    title: str
    recognise: Callable[[DocumentNode], bool]
    read: Callable[[DocumentNode, str, Path], MeasuredTable]


def require_runs(runs: int | None, file: Path) -> None:
    """Raises RequestError for a number of runs that no summary can have."""
    if runs is not None and runs < 2:
        raise RequestError(f"--runs {runs}: expected at least 2", place=Place(file))

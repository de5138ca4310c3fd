"""The one family of errors. Raised where the cause is known, shown once at the edge (``ajuste.cli``)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar


@dataclass(frozen=True)
class Place:
    """Where in a file something is wrong. ``line`` counts from 1; ``field`` is a dotted path such as
    ``budget.max_blocks``.
    """

    file: Path | str
    line: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        text = str(self.file)
        if self.line is not None:
            text += f":{self.line}"
        if self.field:
            text += f": {self.field}"
        return text


class AjusteError(Exception):
    """Something went wrong that a person can understand.

    ``message`` says what was found and what would be right, ``hint`` what to do next (a command, nearest names).
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None, place: Place | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.place = place

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class RequestError(AjusteError):
    """The request was wrong and nothing was changed: exit code 2."""

    exit_code = 2


class RunError(AjusteError):
    """The run failed; everything was restored and what was measured is kept: exit code 1."""

    exit_code = 1

"""The one family of errors. Raised where the cause is known, shown once at the edge (``ajuste.cli``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from rapidfuzz import fuzz, process

LONGEST_SUGGESTED: Final = 100
"""Names that are longer are near to none, and comparing them takes long."""


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


def nearest_names(
    name: str,
    known: Iterable[str],
    *,
    most: int = 1,
    likeness: int = 60,
    scorer: Callable[..., float] = fuzz.WRatio,
) -> list[str]:
    """Those of the ``known`` names that are spelt like ``name``, nearest first; ``likeness`` goes up to 100."""
    if len(name) > LONGEST_SUGGESTED:
        return []
    found = process.extract(name, list(known), scorer=scorer, limit=most, score_cutoff=likeness)
    return [match for match, _, _ in found]


def did_you_mean(names: Iterable[str]) -> str | None:
    """``did you mean a or b?`` for a hint; ``None`` where there is no name."""
    text = " or ".join(names)
    return f"did you mean {text}?" if text else None

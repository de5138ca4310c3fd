"""The file that a study came from: to place errors, and to find the files beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Protocol

from ajuste.model.error import Place
from ajuste.study.location import Path as Keys
from ajuste.study.location import line_of, locate

HINT: Final = "docs/studies.md explains every field; `ajuste schema` gives the schema for editors"


class Origin(Protocol):
    """Where a study comes from: a file, or a command line."""

    @property
    def directory(self) -> Path:
        """What its own programs and files are relative to."""
        ...

    @property
    def hint(self) -> str:
        """Where a person finds what would be right."""
        ...

    def place(self, keys: Keys) -> Place:
        """Where ``keys`` were written down or said, or what is around them."""
        ...


@dataclass(frozen=True)
class Source:
    """``file`` as the person named it; ``text`` is valid TOML."""

    file: Path
    text: str
    hint: str = HINT

    @cached_property
    def _lines(self) -> dict[Keys, int]:
        return locate(self.text)

    def place(self, keys: Keys) -> Place:
        """Where ``keys`` are written down, or the table around them."""
        return Place(self.file, line_of(self._lines, keys), dotted(keys))

    @property
    def directory(self) -> Path:
        return self.file.parent


def dotted(keys: Keys) -> str | None:
    """``("factor", 0, "levels", 2)`` as people count: ``factor[1].levels[3]``; ``None`` for the whole file."""
    text = ""
    for key in keys:
        text += f"[{key + 1}]" if isinstance(key, int) else f".{key}" if text else key
    return text or None

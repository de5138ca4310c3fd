"""The file that a study came from: to place errors, and to find the files beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ajuste.model.error import Place
from ajuste.study.location import Path as Keys
from ajuste.study.location import line_of, locate


@dataclass(frozen=True)
class Source:
    """``file`` as the person named it; ``text`` is valid TOML."""

    file: Path
    text: str

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

"""Where each part of a study from a command line was said: the option, for errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ajuste.model.error import Place
from ajuste.study.location import Path as Keys

HINT = "`ajuste compare --help` explains every option, docs/compare.md all of it with examples"


@dataclass(frozen=True)
class CommandLine:
    """``said`` has the words for keys of the study, such as ``--nice 0,10`` for ``("factor", 0)``."""

    said: Mapping[Keys, str]
    hint: str = HINT

    def place(self, keys: Keys) -> Place:
        """The option that said it, or what is around it."""
        for end in range(len(keys), 0, -1):
            if keys[:end] in self.said:
                return Place(self.said[keys[:end]])
        return Place("ajuste compare")

    @property
    def directory(self) -> Path:
        """Programs and files are relative to where the command was given."""
        return Path()

"""Where in a TOML text each key is: its line number, which neither tomllib nor pydantic know.

Only for text that tomllib accepts: the scanner follows keys, headers and brackets and skips over everything else, so
it need not know what a valid value is. Grammar: TOML 1.0.0, https://toml.io/en/v1.0.0.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Protocol, TypeVar

from ajuste.model.error import Place

T = TypeVar("T")
KeyPath = tuple[str | int, ...]
"""Keys and indices from the top, such as ``("factor", 0, "levels", 2)``."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""(?:"{1,2})?'
    r"|'''(?:[^']|'(?!''))*'''(?:'{1,2})?"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]*")


def locate(text: str) -> dict[KeyPath, int]:
    """Return the line (from 1) of every key, table and array element of ``text``, which must be valid TOML."""
    return _Scanner(text).scan()


def at_or_around(known: Mapping[KeyPath, T], path: KeyPath) -> T | None:
    """What is ``known`` of ``path``, or of the nearest table around it."""
    return next((known[path[:end]] for end in range(len(path), 0, -1) if path[:end] in known), None)


class _Scanner:
    # One pass over the text. `tables` counts the elements of every array of tables.
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self.lines: dict[KeyPath, int] = {}
        self.tables: dict[KeyPath, int] = {}

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        self._skip(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)
        return self.lines

    def _header(self) -> KeyPath:
        is_array = self.text.startswith("[[", self.at)
        here = self.at
        self.at += 2 if is_array else 1
        keys = self._key()
        self.at += 2 if is_array else 1
        path: KeyPath = ()
        for depth, key in enumerate(keys, start=1):
            path = (*path, key)
            self._note(path, here)
            if path in self.tables and not (is_array and depth == len(keys)):
                path = (*path, self.tables[path] - 1)
        if is_array:
            index = self.tables.get(path, 0)
            self.tables[path] = index + 1
            path = (*path, index)
            self._note(path, here)
        return path

    def _pair(self, table: KeyPath) -> None:
        here = self.at
        path = table
        for key in self._key():
            path = (*path, key)
            self._note(path, here)
        self.at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path)

    def _key(self) -> list[str]:
        # A dotted key, up to the character after it.
        keys = []
        while True:
            self._skip(_SPACE)
            if self.text[self.at] in "\"'":
                keys.append(tomllib.loads("key = " + self._take(_STRING))["key"])
            else:
                keys.append(self._take(_BARE_KEY))
            self._skip(_SPACE)
            if self.text[self.at] != ".":
                return keys
            self.at += 1

    def _value(self, path: KeyPath) -> None:
        first = self.text[self.at]
        if first == "{":
            self._inline_table(path)
        elif first == "[":
            self._array(path)
        elif first in "\"'":
            self._take(_STRING)
        else:
            self._take(_SCALAR)

    def _inline_table(self, path: KeyPath) -> None:
        self.at += 1
        self._skip(_BLANK)
        while self.text[self.at] != "}":
            self._pair(path)
            self._comma()
        self.at += 1

    def _array(self, path: KeyPath) -> None:
        self.at += 1
        self._skip(_BLANK)
        index = 0
        while self.text[self.at] != "]":
            self._note((*path, index), self.at)
            self._value((*path, index))
            self._comma()
            index += 1
        self.at += 1

    def _comma(self) -> None:
        self._skip(_BLANK)
        if self.text[self.at] == ",":
            self.at += 1
        self._skip(_BLANK)

    def _note(self, path: KeyPath, at: int) -> None:
        self.lines.setdefault(path, bisect_right(self.starts, at))

    def _skip(self, pattern: re.Pattern[str]) -> None:
        self._take(pattern)

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ValueError(f"not valid TOML at character {self.at}")
        self.at = match.end()
        return match[0]


# The file that a study came from: to place errors, and to find the files beside it.


HINT: Final = "see `ajuste help study-fields` for every field; `ajuste schema` prints a schema for editors"


class StudyOrigin(Protocol):
    """Where a study comes from: a file, or a command line."""

    @property
    def directory(self) -> Path:
        """Return the directory that its own programs and files are relative to."""
        ...

    @property
    def hint(self) -> str:
        """Return the hint where a person finds what would be right."""
        ...

    def place(self, keys: KeyPath) -> Place:
        """Return where ``keys`` were given, or the table around them."""
        ...


@dataclass(frozen=True)
class StudySource:
    """``file`` as the person named it; ``text`` is valid TOML."""

    file: Path
    text: str
    hint: str = HINT

    @cached_property
    def _lines(self) -> dict[KeyPath, int]:
        return locate(self.text)

    def place(self, keys: KeyPath) -> Place:
        """Return where ``keys`` are written down, or the table around them."""
        return Place(self.file, at_or_around(self._lines, keys), dotted(keys))

    @property
    def directory(self) -> Path:
        return self.file.parent


def dotted(keys: KeyPath) -> str | None:
    """``("factor", 0, "levels", 2)`` as people count: ``factor[1].levels[3]``; ``None`` for the whole file."""
    text = ""
    for key in keys:
        text += f"[{key + 1}]" if isinstance(key, int) else f".{key}" if text else key
    return text or None

"""Output of builds: their first error, and whether a disk was full."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

_COMPILED: Final = re.compile(r"^ {2}(?:CC|AS)(?: \[M\])? +\S")
_FULL: Final = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)
_ERROR_LINES: Final = 4
_ERRORS: Final = (
    re.compile(r"^[^\s:]+:\d+(?::\d+)?: (?:fatal )?error: "),
    re.compile(r"^(?:gcc|cc1|as): (?:fatal )?error: "),
    re.compile(r"^[^\s:]+:\d+: (?:syntax error|invalid|unknown|missing|can't open)"),
    re.compile(r"^\S*ld: .*|.*undefined reference to"),
    re.compile(r"^(?:ERROR|FAILED|Error): "),
    re.compile(r".*: not found$|.*: command not found$"),
    re.compile(r"^.*make(?:\[\d+\])?: \*\*\* (?!\[|Waiting)"),
    re.compile(r"^.*make(?:\[\d+\])?: \*\*\* "),
)


def compiles(line: str) -> bool:
    """Return whether a kernel's make compiles an object in this line."""
    return _COMPILED.match(line) is not None


def says_full(lines: Iterable[str]) -> bool:
    """Return whether a build printed that a disk is full."""
    return any(_FULL.search(line) for line in lines)


def first_error(lines: Sequence[str]) -> list[str]:
    """Return the first error of a compiler, or else of a linker, of make, …, with its further lines."""
    for pattern in _ERRORS:
        for number, line in enumerate(lines):
            if pattern.match(line):
                below = [text for text in lines[number + 1 : number + 1 + _ERROR_LINES] if text.startswith((" ", "\t"))]
                return [line, *(text for text in below if not compiles(text))]
    return []

"""How much a study may hold, whatever it says: what is larger is refused before anybody looks at its meaning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ajuste.study.location import Path
from ajuste.study.problem import Problem

DEEPEST: Final = 16
"""Tables and lists within each other; the fields of a study have seven."""
MOST_ELEMENTS: Final = 1000
"""Of one list or table; as many levels can be made from a range."""
MOST_VALUES: Final = 5000
LONGEST_KEY: Final = 200
LONGEST_TEXT: Final = 10_000
LARGEST_NUMBER: Final = 1 << 64
"""What the kernel takes at most."""


def beyond_limits(document: dict[str, Any]) -> list[Problem]:
    """What is too large or too deep in a document, which may be nested however deeply; the first of it only."""
    values = 0
    waiting: list[tuple[Path, Any]] = [((), document)]
    while waiting:
        path, value = waiting.pop()
        values += 1
        if problem := _problem(path, value):
            return [problem]
        if values > MOST_VALUES:
            return [Problem((), f"it holds more than {MOST_VALUES} values; no study needs so many")]
        waiting += [((*path, key), inner) for key, inner in _elements(value)]
    return []


def _problem(path: Path, value: Any) -> Problem | None:
    if len(path) > DEEPEST:
        return Problem(path[:DEEPEST], f"nested deeper than {DEEPEST} tables and lists; no field is that deep")
    if path and isinstance(path[-1], str) and len(path[-1]) > LONGEST_KEY:
        return Problem(path[:-1], f"has a name of {len(path[-1])} characters; expected at most {LONGEST_KEY}")
    if isinstance(value, dict | list) and len(value) > MOST_ELEMENTS:
        return Problem(path, f"has {len(value)} elements; expected at most {MOST_ELEMENTS}")
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return Problem(path, f"is a text of {len(value)} characters; expected at most {LONGEST_TEXT}")
    if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        return Problem(path, f"is a number of {value.bit_length()} bits; expected at most 64")
    return None


def _elements(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)

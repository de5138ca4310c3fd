"""Problems of a study: what is wrong, in which line, and what would be right; all of them in one error."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ajuste.model.base import BaseModel
from ajuste.model.error import Place, RequestError, did_you_mean, nearest_names

# Where in a TOML text each key is: its line number, which neither tomllib nor pydantic know.
#
# Only for text that tomllib accepts: the scanner follows keys, headers and brackets and skips over everything else,
# so it need not know what a valid value is. Grammar: TOML 1.0.0, https://toml.io/en/v1.0.0.


T = TypeVar("T")
# Keys and indices from the top, such as `("factor", 0, "levels", 2)`.
KeyPath = tuple[str | int, ...]

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

HINT: Final = "see `ajuste help study-fields` for every field; `ajuste schema` prints a schema for editors"
MOST_LISTED: Final = 20

# Maximum number of problems that are looked for: nobody reads on after so many, and looking for what was meant takes
# its time with each.
MOST_SOUGHT: Final = 100

_EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a text in quotes",
    "bool_type": "true or false",
    "tuple_type": "a list in [ ]",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}

# What Pydantic says of a value, and how Ajuste says it.
_BOUNDS = (
    ("Input should be less than or equal to", "expected at most"),
    ("Input should be greater than or equal to", "expected at least"),
    ("Input should be greater than", "expected more than"),
    ("Input should be less than", "expected less than"),
    ("Input should be", "expected a value"),
    ("String should have", "expected"),
)


def locate(text: str) -> dict[KeyPath, int]:
    """Return the line (from 1) of every key, table and array element of ``text``, which must be valid TOML."""
    return _Scanner(text).scan()


def at_or_around(known: Mapping[KeyPath, T], path: KeyPath) -> T | None:
    """Return what is ``known`` of ``path``, or of the nearest table around it."""
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


class StudyOrigin(Protocol):
    """The origin of a study: a file, or a command line."""

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
    """A study file: ``file`` as the person named it; ``text`` is valid TOML."""

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
    """Return ``("factor", 0, "levels", 2)`` as people count: ``factor[1].levels[3]``; ``None`` for the whole file."""
    text = ""
    for key in keys:
        text += f"[{key + 1}]" if isinstance(key, int) else f".{key}" if text else key
    return text or None


@dataclass(frozen=True)
class Problem:
    """A problem of a document: ``path`` is where; ``message`` says what was found and what would be right."""

    path: KeyPath
    message: str
    hint: str | None = None


def error(problems: Sequence[Problem], source: StudyOrigin | None) -> RequestError:
    """Return one error with all ``problems``, a line each, in the order of the file."""
    placed = [(source.place(p.path) if source else None, p) for p in problems]
    placed = list({(str(place or dotted(p.path)), p.message): (place, p) for place, p in placed}.values())
    placed.sort(key=lambda pair: (pair[0].line or 0) if pair[0] else 0)
    place, first = placed[0]
    hint = source.hint if source else HINT
    if len(placed) == 1 and place:
        return RequestError(first.message, hint=first.hint or hint, place=place)
    lines = [f"{where or dotted(p.path) or 'study'}: {_with_hint(p)}" for where, p in placed[:MOST_LISTED]]
    if place:
        lines[0] = _with_hint(first)
    if len(placed) > MOST_LISTED:
        least = "at least " if len(placed) >= MOST_SOUGHT else ""
        lines.append(f"and {least}{len(placed) - MOST_LISTED} more problems")
    return RequestError("\n".join(lines), hint=hint, place=place)


def _with_hint(problem: Problem) -> str:
    text = f"{problem.message} ({problem.hint})" if problem.hint else problem.message
    return text.replace("\n", "\\n")


def nearest(name: str, known: Sequence[str]) -> str:
    """Return ``; did you mean a or b?``, or nothing where none is near."""
    near = did_you_mean(nearest_names(name, known, most=3))
    return f"; {near}" if near else ""


class Named(Protocol):
    """A table of a file by its name."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def named_twice(table: str, tables: Sequence[Named], around: KeyPath = ()) -> list[Problem]:
    """Yield a problem for each of ``tables`` (``table`` in the file, in ``around``) with the name of an earlier one."""
    names = [candidate.name for candidate in tables]
    return [
        Problem((*around, table, index, "name"), f'the {table} "{name}" is given twice; expected different names')
        for index, name in enumerate(names)
        if name in names[:index]
    ]


def chosen_by_name(table: str, tables: Sequence[N], names: Sequence[str], where: object) -> tuple[N, ...]:
    """Return the ``tables`` with these names, in the file's order; all if none is named. Raises RequestError for a
    name that nothing in ``where`` has.
    """
    known = [candidate.name for candidate in tables]
    for name in names:
        if name not in known:
            raise RequestError(
                f'{table} "{name}" not found in {where}{nearest(name, known)}',
                hint=f"choose one of {', '.join(known)}",
            )
    return tuple(candidate for candidate in tables if not names or candidate.name in names)


def from_validation(failure: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Return the problems that pydantic found, in the words of this house."""
    # A list whose elements are all wrong is also "too short": that is no news. Nor is it that a wrong text is no list.
    details = failure.errors(include_url=False)
    texts = {detail["loc"][:-1] for detail in details if detail["type"] in ("string_pattern_mismatch", "literal_error")}
    return [
        _problem(detail, model)
        for detail in details
        if (detail["type"] != "too_short" or not detail["input"])
        and (detail["type"] != "tuple_type" or detail["loc"][:-1] not in texts)
    ]


def _problem(detail: ErrorDetails, model: type[BaseModel]) -> Problem:
    path, kind = _without_tags(model, detail["loc"]), detail["type"]
    context = detail.get("ctx", {})
    value = detail["input"]
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    text = {"True": "true", "False": "false"}.get(text, text).replace("\n", "\\n")
    actual = f"found {text if len(text) <= 60 else text[:57] + '…'}"
    if kind == "extra_forbidden":
        fields = fields_at(model, detail["loc"][:-1])
        return Problem(path, f"unknown field{nearest(str(path[-1]), fields) or '; expected ' + ', '.join(fields)}")
    if kind == "missing":
        return Problem(path, "is required")
    if kind in _EXPECTED:
        return Problem(path, f"{actual}; expected {_EXPECTED[kind]}")
    if kind == "literal_error":
        return Problem(path, f"{actual}; expected {context['expected']}")
    if kind == "too_short":
        return Problem(path, "is empty; expected at least one")
    if kind == "string_pattern_mismatch":
        return Problem(path, f"{actual}; expected text that matches {context['pattern']}")
    if kind == "value_error":
        return Problem(path, str(context["error"]) if isinstance(value, dict) else f"{actual}; {context['error']}")
    text = detail["msg"]
    for theirs, ours in _BOUNDS:
        text = text.replace(theirs, ours)
    return Problem(path, f"{actual}; {text}")


def fields_at(model: type[BaseModel], path: KeyPath) -> list[str]:
    """Return the names of all fields of the table at ``path``, as they are written in a file."""
    tables: Sequence[type[BaseModel]] = (model,)
    for key in path:
        field = next((f for name, f in tables[0].model_fields.items() if key in (name, f.alias)), None)
        if field is not None:
            tables = _find_tables(field.annotation) or tables
        elif tagged := [table for table in tables if _has_tag(table, key)]:
            tables = tagged
        # Any other key is a place in a list, or the name of a table among tables.
    return [field.alias or name for name, field in tables[0].model_fields.items()]


def _has_tag(table: type[BaseModel], key: str | int) -> bool:
    # Of several kinds of tables in a list pydantic names the kind in the path.
    return any(key in get_args(field.annotation) for field in table.model_fields.values())


def _without_tags(model: type[BaseModel], path: KeyPath) -> KeyPath:
    # The path in the file: it has no names of kinds.
    tables: Sequence[type[BaseModel]] = (model,)
    written: list[str | int] = []
    for key in path:
        field = next((f for name, f in tables[0].model_fields.items() if key in (name, f.alias)), None)
        if len(tables) > 1 and (tagged := [table for table in tables if _has_tag(table, key)]):
            tables = tagged
            continue
        written.append(key)
        if field is not None:
            tables = _find_tables(field.annotation) or tables
    return tuple(written)


def _find_tables(annotation: Any) -> Sequence[type[BaseModel]]:
    # The table models in an annotation such as `tuple[FactorTable, ...]`.
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (annotation,)
    return [model for inner in get_args(annotation) for model in _find_tables(inner)]

"""Problems of a study: what is wrong, where, and what would be right; all of them in one error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ajuste.model.base import BaseModel
from ajuste.model.error import RequestError, did_you_mean, nearest_names
from ajuste.study.location import HINT, KeyPath, StudyOrigin, dotted

MOST_LISTED: Final = 20
MOST_SOUGHT: Final = 100
"""After so many nobody reads on, and looking for what was meant takes its time with each."""

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


@dataclass(frozen=True)
class Problem:
    """``path`` is where in the document; ``message`` says what was found and what would be right."""

    path: KeyPath
    message: str
    hint: str | None = None


def error(problems: Sequence[Problem], source: StudyOrigin | None) -> RequestError:
    """Return one error with all ``problems``, a line each, in the order of the file."""
    placed = [(source.place(p.path) if source else None, p) for p in problems]
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
    # A list whose elements are all wrong is also "too short": that is no news.
    return [
        _problem(detail, model)
        for detail in failure.errors(include_url=False)
        if detail["type"] != "too_short" or not detail["input"]
    ]


def _problem(detail: ErrorDetails, model: type[BaseModel]) -> Problem:
    path, kind = detail["loc"], detail["type"]
    context = detail.get("ctx", {})
    actual = f"found {_show(detail['input'])}"
    if kind == "extra_forbidden":
        fields = fields_at(model, path[:-1])
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
        return Problem(
            path, str(context["error"]) if isinstance(detail["input"], dict) else f"{actual}; {context['error']}"
        )
    text = detail["msg"]
    for theirs, ours in _BOUNDS:
        text = text.replace(theirs, ours)
    return Problem(path, f"{actual}; {text}")


def fields_at(model: type[BaseModel], path: KeyPath) -> list[str]:
    """Return the names of all fields of the table at ``path``, as they are written in a file."""
    for key in path:
        if isinstance(key, int):
            continue
        field = next(f for name, f in model.model_fields.items() if key in (name, f.alias))
        model = _find_table(field.annotation) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _find_table(annotation: Any) -> type[BaseModel] | None:
    # The table model in an annotation such as `tuple[FactorTable, ...]`.
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for inner in get_args(annotation) if (model := _find_table(inner))), None)


def _show(value: Any) -> str:
    text = repr(value) if not isinstance(value, str) else f'"{value}"'
    text = {"True": "true", "False": "false"}.get(text, text).replace("\n", "\\n")
    return text if len(text) <= 60 else text[:57] + "…"

"""Reading a study file: from a path to a study that is known to make sense, or to all that is wrong with it."""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.model.caller import open_given
from ajuste.model.error import Place, RequestError
from ajuste.model.trial import COMMAND_FACTOR, KERNEL_FACTOR
from ajuste.study.check import check
from ajuste.study.factors import WORKLOAD_PREFIX, ParseKernel
from ajuste.study.problem import HINT, KeyPath, Problem, StudyOrigin, StudySource, error, from_validation
from ajuste.study.ranges import with_levels
from ajuste.study.schema import Study
from ajuste.study.services import with_services
from ajuste.study.site import check_files

_LOG: Final = logging.getLogger(__name__)

# How much a study may hold, whatever it says: what is larger is refused before anybody looks at its meaning.


# Deepest nesting of tables and lists; the fields of a study have seven.
DEEPEST: Final = 16
# Most elements of one list or table; as many levels can be made from a range.
MOST_ELEMENTS: Final = 1000
MOST_VALUES: Final = 5000
LONGEST_KEY: Final = 200
LONGEST_TEXT: Final = 10_000
# What a program or a patch needs: limited by the size of the file alone.
_LONG_TEXTS: Final = frozenset({("patch", "text"), ("scheduler", "source")})
# Largest number that the kernel takes.
LARGEST_NUMBER: Final = 1 << 64

# Largest study file: none is written by hand that is larger than this.
LARGEST_BYTES = 1 << 20

# Reading such a key takes ever longer, and so does the place of all that is below it.
_DEEP_KEY: Final = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]{{0,200}}+"|'[^'\n]{{0,200}}+')[ \t]*+\.[ \t]*+){{{DEEPEST}}}"""
)

_MANY_DIGITS: Final = re.compile(r"[0-9_]{1000}")
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_RANGE = r"^[^.]+(\.[0-9]+\S*)?\.\.[^.]+(\.[0-9]+\S*)?$"


def beyond_limits(document: dict[str, Any]) -> list[Problem]:
    """Return the first part of a document that is too large or too deep; it may be nested however deeply."""
    values = 0
    waiting: list[tuple[KeyPath, Any]] = [((), document)]
    while waiting:
        path, value = waiting.pop()
        values += 1
        if problem := _problem(path, value):
            return [problem]
        if values > MOST_VALUES:
            return [Problem((), f"has more than {MOST_VALUES} values; expected at most {MOST_VALUES}")]
        if isinstance(value, dict):
            waiting += [((*path, key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            waiting += [((*path, index), inner) for index, inner in enumerate(value)]
    return []


def _problem(path: KeyPath, value: Any) -> Problem | None:
    if len(path) > DEEPEST:
        return Problem(path[:DEEPEST], f"is nested in more than {DEEPEST} tables and lists; expected at most {DEEPEST}")
    if path and isinstance(path[-1], str) and len(path[-1]) > LONGEST_KEY:
        return Problem(path[:-1], f"has a name of {len(path[-1])} characters; expected at most {LONGEST_KEY}")
    if isinstance(value, dict | list) and len(value) > MOST_ELEMENTS:
        return Problem(path, f"has {len(value)} elements; expected at most {MOST_ELEMENTS}")
    if isinstance(value, str) and len(value) > LONGEST_TEXT and (*path[:1], *path[2:3]) not in _LONG_TEXTS:
        return Problem(path, f"is a text of {len(value)} characters; expected at most {LONGEST_TEXT}")
    if value is None:
        return Problem(path, "is null; expected a value, or no such field")
    if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        return Problem(path, f"is a number of {value.bit_length()} bits; expected at most 64")
    return None


def read_study(path: Path, known: Catalogue | None = None, *, parse_kernel: ParseKernel = str) -> Study:
    """Return the study in the file ``path``, checked against what is ``known``: by default Ajuste's catalogue.

    Raises one RequestError with everything that is wrong, a line each with file, line and field.
    """
    document, source = read_toml(path, "study file", "list the built-in studies with `ajuste studies`")
    study = checked_study(document, source, known or catalogue(), parse_kernel=parse_kernel)
    _LOG.info("study read", extra={"file": str(path), "study": study.name})
    return study


def read_toml(path: Path, what: str, hint: str, *, fields: str = HINT) -> tuple[dict[str, Any], StudySource]:
    """Return the document in ``path``, within limits, and where everything is in it. Raises RequestError.

    ``what`` it is, ``hint`` if there is no such file, and ``fields`` if it is wrong, are for the error.
    """
    text = _read(path, what, hint)
    source = StudySource(path, text, fields)
    document = _parse(path, text, fields)
    if problems := beyond_limits(document):
        raise error(problems, source)
    return document, source


def checked_study(
    document: dict[str, Any],
    source: StudyOrigin,
    known: Catalogue,
    *,
    parse_kernel: ParseKernel = str,
    with_files: bool = True,
) -> Study:
    """Return the study in ``document``, checked as by ``read_study``; without ``with_files`` its files may not be there
    yet.
    """
    parsed = with_services(parse_study(document, source).at(source), known)
    study, problems = with_levels(parsed, known)
    wrong = {problem.path[:2] for problem in problems}
    problems += [problem for problem in check(study, known, parse_kernel) if problem.path[:2] not in wrong]
    problems += check_files(study) if with_files else []
    if problems:
        raise error(problems, source)
    return study


def parse_study(document: dict[str, Any], source: StudyOrigin | None = None) -> Study:
    """Return a study from a document that was read already; only its form is checked. Raises RequestError."""
    try:
        return Study.model_validate(document)
    except ValidationError as failure:
        raise error(from_validation(failure, Study), source) from None


def _read(path: Path, what: str, hint: str) -> str:
    try:
        with open_given(path) as file:
            data = file.read(LARGEST_BYTES + 1) or b""  # Files of the kernel such as /proc/kmsg may have nothing yet.
    except OSError as failure:
        raise RequestError(f"cannot read {what} {path}: {failure.strerror}", hint=hint) from None
    if len(data) > LARGEST_BYTES:
        raise RequestError(
            f"has more than {LARGEST_BYTES} bytes; a {what} has at most {LARGEST_BYTES}", place=Place(path)
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as failure:
        line = data[: failure.start].count(b"\n") + 1
        raise RequestError("found invalid UTF-8; expected a TOML file in UTF-8", place=Place(path, line)) from None


def _parse(path: Path, text: str, hint: str) -> dict[str, Any]:
    if deep := _DEEP_KEY.search(text):
        place = Place(path, text.count("\n", 0, deep.start()) + 1)
        raise RequestError(f"found a key of more than {DEEPEST} parts; expected at most {DEEPEST}", place=place)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as failure:
        message, line = str(failure), None
        if match := re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL):
            message, line = f"{match[1]} (column {match[3]})", int(match[2])
        elif message.endswith(" (at end of document)"):
            line = text.count("\n") + 1
        raise RequestError(f"not valid TOML: {message}", hint=hint, place=Place(path, line)) from None
    except RecursionError:
        raise RequestError("not valid TOML: brackets are nested too deeply", hint=hint, place=Place(path)) from None
    except ValueError:  # int() of thousands of digits
        digits = _MANY_DIGITS.search(text)
        place = Place(path, text.count("\n", 0, digits.start()) + 1 if digits else None)
        raise RequestError("found a number with too many digits; expected at most 64 bits", place=place) from None


# The JSON Schema of study files, with the names of the catalogue, so that editors complete and check them.


def json_schema(catalogue: Catalogue) -> dict[str, Any]:
    """Return the schema (draft 2020-12). Names are suggested, not required: custom metrics have names of their own."""
    schema = Study.model_json_schema(by_alias=True)
    tables = schema["$defs"]
    parameters = {name for kind in catalogue.workloads.values() for name in kind.parameters}
    factors = [
        KERNEL_FACTOR,
        COMMAND_FACTOR,
        *catalogue.tunables,
        *(WORKLOAD_PREFIX + name for name in sorted(parameters)),
    ]
    metrics = [*catalogue.metrics, *(metric.name for kind in catalogue.workloads.values() for metric in kind.metrics)]
    endless = [name for name, kind in catalogue.workloads.items() if kind.endless]
    ending = [name for name in catalogue.workloads if name not in endless]
    _suggest(tables["FactorTable"]["properties"]["name"], factors)
    for field in ("metrics", "describe"):
        of_field = tables["AnalysisTable"]["properties"][field]
        for choice in (of_field, *of_field.get("anyOf", ())):
            if "items" in choice:
                _suggest(choice["items"], metrics)
    levels = tables["FactorTable"]["properties"]["levels"]
    a_list = {name: levels.pop(name) for name in ("type", "items", "minItems", "default")}
    del a_list["default"]
    levels["anyOf"] = [a_list, {"type": "string", "pattern": _RANGE}]
    tables["FactorTable"]["required"] = ["name"]
    tables["FactorTable"]["anyOf"] = [{"required": ["levels"]}, {"required": ["settings"]}]
    for table, kinds, jobs in (
        ("WorkloadTable", ending, ("kind", "command", "variant")),
        ("BackgroundTable", [*endless, *ending], ("kind", "command")),
    ):
        tables[table]["properties"]["kind"] |= {"anyOf": [{"enum": kinds}, {"type": "string"}, {"type": "null"}]}
        tables[table]["oneOf"] = [{"required": [job]} for job in jobs]
    return {"$schema": DIALECT, **schema, "title": "An Ajuste study"}


def _suggest(field: dict[str, Any], names: Iterable[str]) -> None:
    field.pop("type", None)
    field["anyOf"] = [{"enum": list(dict.fromkeys(names))}, {"type": "string"}]

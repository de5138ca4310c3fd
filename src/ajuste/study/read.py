"""Reading a study file: from a path to a study that is known to make sense, or to all that is wrong with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.model.error import Place, RequestError
from ajuste.study.check import check
from ajuste.study.factors import ParseKernel
from ajuste.study.files import check_files
from ajuste.study.limits import DEEPEST, beyond_limits
from ajuste.study.problem import error, from_validation
from ajuste.study.ranges import with_levels
from ajuste.study.schema import Study
from ajuste.study.source import Origin, Source

LARGEST_BYTES = 1 << 20
"""No study is written by hand that is larger than this."""


_DEEP_KEY: Final = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]{{0,200}}+"|'[^'\n]{{0,200}}+')[ \t]*+\.[ \t]*+){{{DEEPEST}}}"""
)
"""Reading such a key takes ever longer, and so does the place of all that is below it."""
_MANY_DIGITS: Final = re.compile(r"[0-9_]{1000}")


def read_study(path: Path, known: Catalogue | None = None, *, parse_kernel: ParseKernel = str) -> Study:
    """The study in the file ``path``, checked against what is ``known`` (see ``study.check``): Ajuste's own catalogue
    unless another is given.

    Raises one RequestError with everything that is wrong, a line each with file, line and field.
    """
    text = _read(path)
    source = Source(path, text)
    document = _parse(path, text)
    if problems := beyond_limits(document):
        raise error(problems, source)
    return checked_study(document, source, known or catalogue(), parse_kernel=parse_kernel)


def checked_study(
    document: dict[str, Any], source: Origin, known: Catalogue, *, parse_kernel: ParseKernel = str
) -> Study:
    """The study in ``document``, checked as by ``read_study``."""
    study, problems = with_levels(parse_study(document, source).at(source), known)
    wrong = {problem.path[:2] for problem in problems}
    problems += [found for found in check(study, known, parse_kernel) if found.path[:2] not in wrong]
    problems += check_files(study)
    if problems:
        raise error(problems, source)
    return study


def parse_study(document: dict[str, Any], source: Origin | None = None) -> Study:
    """A study from a document that was read already; only its form is checked. Raises RequestError."""
    try:
        return Study.model_validate(document)
    except ValidationError as failure:
        raise error(from_validation(failure, Study), source) from None


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError as failure:
        raise RequestError(
            f"cannot read the study file {path}: {failure.strerror}", hint="`ajuste studies` lists the built-in ones"
        ) from None
    if len(data) > LARGEST_BYTES:
        raise RequestError(f"more than {LARGEST_BYTES} bytes; no study file is that large", place=Place(path))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as failure:
        line = data[: failure.start].count(b"\n") + 1
        raise RequestError("not UTF-8; a TOML file must be", place=Place(path, line)) from None


def _parse(path: Path, text: str) -> dict[str, Any]:
    if deep := _DEEP_KEY.search(text):
        place = Place(path, text.count("\n", 0, deep.start()) + 1)
        raise RequestError(f"a key of more than {DEEPEST} parts; no field is that deep", place=place)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as failure:
        message, line = str(failure), None
        if match := re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL):
            message, line = f"{match[1]} (column {match[3]})", int(match[2])
        elif message.endswith(" (at end of document)"):
            line = text.count("\n") + 1
        raise RequestError(f"no valid TOML: {message}", place=Place(path, line)) from None
    except RecursionError:
        raise RequestError("no valid TOML: brackets are nested too deeply", place=Place(path)) from None
    except ValueError:  # int() of thousands of digits
        digits = _MANY_DIGITS.search(text)
        place = Place(path, text.count("\n", 0, digits.start()) + 1 if digits else None)
        raise RequestError("a number with too many digits; no field takes it", place=place) from None

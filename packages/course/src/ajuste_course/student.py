"""A student's own configuration: values drawn by their number, and the seeds of their studies."""

from __future__ import annotations

import hashlib
import itertools
import re
from typing import TypeAlias, TypeVar

from ajuste.model.base import ClosedModel
from ajuste.model.error import RequestError
from ajuste.model.wording import visible
from ajuste_course.sheet import Draw, Sheet, filled

Drawn: TypeAlias = dict[str, tuple[str | int | float, ...]]
"""Values by the name of their draw, in the order of the sheet."""

Part = TypeVar("Part", bound=ClosedModel)


def check_student(sheet: Sheet, student: str) -> str:
    """Return a student's number. Raises RequestError if the sheet says that none looks like it."""
    if len(student) > 64 or not re.fullmatch(sheet.students, student):
        raise RequestError(
            f"--student {visible(student[:64])}: no student has this number; expected {sheet.students}",
            hint="use the number that your school gave you",
        )
    return student


def drawn(sheet: Sheet, student: str) -> Drawn:
    """Return the values that ``student`` gets, the same everywhere."""
    values: Drawn = {
        name: tuple(sorted(_chosen(draw, f"{sheet.name} {sheet.version} {student} {name}"), key=draw.values.index))
        for name, draw in sheet.draw.items()
    }
    return {**values, "student": (student,)}


def _chosen(draw: Draw, key: str) -> list[str | int | float]:
    # Different values, each as likely: a hash for each pick, among what is left.
    left = list(dict.fromkeys(draw.values))
    return [left.pop(_number(f"{key} {pick}") % len(left)) for pick in range(draw.take)]


def filled_for(part: Part, values: Drawn) -> Part:
    """Return a part of a sheet with the values of a student in it; where no seed is given, it is left empty."""
    return type(part).model_validate(filled(part.model_dump(by_alias=True), {"seed": ("",), **values}))


def study_seed(sheet: Sheet, student: str, step: str, seal: str) -> int:
    """Return the seed of a study, which the ``seal`` of the predictions before it decides, too: figures that were
    measured with one prediction are not those of another.
    """
    return _number(f"{sheet.name} {sheet.version} {student} {step} {seal}") % (1 << 31)


def ways(sheet: Sheet) -> int:
    """Return how many different sets of values students can get."""
    count = 1
    for draw in sheet.draw.values():
        count *= len(list(itertools.combinations(dict.fromkeys(draw.values), draw.take)))
    return count


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])

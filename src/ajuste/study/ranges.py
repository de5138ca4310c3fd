"""Ranges: the levels that ``LOW..HIGH`` of a factor stands for."""

from __future__ import annotations

from dataclasses import dataclass

from ajuste.catalogue.level import check_level, check_parameter, quantity_unit
from ajuste.catalogue.loader import Catalogue
from ajuste.design.combinations import spaced, stepped
from ajuste.model.error import RequestError
from ajuste.model.tunable import Span, Tunable
from ajuste.model.workload import Parameter
from ajuste.study.factors import is_tunable, service_part, workload_parameter
from ajuste.study.problem import KeyPath, Problem
from ajuste.study.schema import DEFAULT_POINTS, FactorTable, Study

RANGE_MARK = ".."


@dataclass(frozen=True)
class _Number:
    # What a factor is that has whole numbers as levels.
    name: str
    kind: Tunable | Parameter

    def read(self, text: str) -> int:
        # Return a level in the tunable's unit. Raises RequestError.
        if isinstance(self.kind, Tunable):
            return int(check_level(self.kind, text))
        return int(check_parameter(self.name, self.kind, text))


# A setting of a service, whose limits only the service knows.
_SETTING = Parameter(what="", default="", minimum=0, maximum=0).model_copy(update={"minimum": None, "maximum": None})


class _Wrong(Exception):
    # `field` of the factor is not what it should be.
    def __init__(self, field: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.field, self.message, self.hint = field, message, hint


def with_levels(study: Study, catalogue: Catalogue) -> tuple[Study, list[Problem]]:
    """Return ``study`` with the levels of all its ranges, and what is wrong with these.

    A range that is wrong has its two ends as levels, so that everything else can be checked nevertheless.
    """
    problems: list[Problem] = []
    factors: list[FactorTable] = []
    for index, factor in enumerate(study.factors):
        levels = factor.levels
        try:
            if factor.range is not None:
                _, made = _made(factor, study, catalogue)
                levels = levels or tuple(map(str, made))
        except _Wrong as wrong:
            path: KeyPath = ("factor", index, wrong.field)
            problems.append(Problem(path, wrong.message, wrong.hint))
            levels = levels or tuple(end.strip() for end in (factor.range or "").split(RANGE_MARK))
        factors.append(factor.model_copy(update={"levels": levels}) if levels != factor.levels else factor)
    return study.model_copy(update={"factors": tuple(factors)}), problems


def factor_span(factor: FactorTable, study: Study, catalogue: Catalogue) -> Span | None:
    """Return the range of a factor of a study that was checked; ``None`` if it has none."""
    return _made(factor, study, catalogue)[0] if factor.range is not None else None


def factor_numbers(factor: FactorTable, study: Study, catalogue: Catalogue) -> tuple[int, ...]:
    """Return the levels of a factor with a range as numbers in its tunable's unit."""
    number = _number(factor, study, catalogue, "levels")
    return tuple(map(number.read, factor.levels))


def _made(factor: FactorTable, study: Study, catalogue: Catalogue) -> tuple[Span, tuple[int, ...]]:
    field = "range" if factor.levels else "levels"
    number = _number(factor, study, catalogue, field)
    low, high = _ends(factor.range or "", number, field)
    scale = factor.scale or "linear"
    if scale == "log" and low <= 0:
        raise _Wrong("scale", f"found log; expected a range above 0, but it begins at {low}", 'set scale = "linear"')
    if factor.step is not None:
        made = _by_step(factor.step, low, high, number, scale)
    else:
        made = spaced(low, high, factor.points or DEFAULT_POINTS, scale)
    listed = bool(factor.levels) and not (factor.points or factor.step)
    return Span(low=low, high=high, scale=scale, points=0 if listed else len(made)), made


def _number(factor: FactorTable, study: Study, catalogue: Catalogue, field: str) -> _Number:
    # Raises `_Wrong` for a factor whose levels are no whole numbers.
    kind_of_number: Tunable | Parameter | None = None
    if parameter := workload_parameter(factor.name):
        kind = catalogue.workloads.get(study.workload.kind or "")
        kind_of_number = kind.parameters.get(parameter) if kind else None
    elif part := service_part(factor.name, study.workload):
        kind_of_number = catalogue.find_tunable(part.name) if part.is_attribute else _SETTING
    elif is_tunable(factor.name):
        try:
            kind_of_number = catalogue.find_tunable(factor.name)
        except RequestError as failure:
            raise _Wrong("name", failure.message, failure.hint) from None
    if kind_of_number is not None and kind_of_number.type == "integer":
        return _Number(factor.name, kind_of_number)
    message = f'found "{factor.range}"; {factor.name} has no numeric levels, so it supports no range'
    choices = ", ".join(kind_of_number.choices) if kind_of_number is not None else ""
    raise _Wrong(field, f"{message}; expected a list", f"give levels among {choices}" if choices else None)


def _ends(text: str, number: _Number, field: str) -> tuple[int, int]:
    actual = f'found "{text}"'
    parts = [part.strip() for part in text.split(RANGE_MARK)]
    if len(parts) != 2 or not all(parts):
        raise _Wrong(field, f'{actual}; expected a list, or a range such as "1ms..30ms"')
    first, last = parts
    if quantity_unit(first) and not quantity_unit(last):
        raise _Wrong(
            field, f'{actual}; expected a unit at the upper end, or at both: "{first}..{last}{quantity_unit(first)}"'
        )
    try:
        low, high = number.read(first + (quantity_unit(last) if not quantity_unit(first) else "")), number.read(last)
    except RequestError as failure:
        raise _Wrong(field, f"{actual}; {failure.message}", failure.hint) from None
    except ValueError:
        raise _Wrong(field, f"{actual}; expected numbers at both ends") from None
    if low == high:
        raise _Wrong(field, f"{actual}, a range with equal ends; expected different ends", f'write levels = ["{last}"]')
    if low > high:
        raise _Wrong(field, f"{actual}, a reversed range; expected the lower end first", f"write {last}..{first}")
    return low, high


def _by_step(text: str, low: int, high: int, number: _Number, scale: str) -> tuple[int, ...]:
    if scale == "log":
        raise _Wrong("step", f'found {text}; step conflicts with scale = "log"', "use points = 6")
    kind, actual = number.kind, f'found "{text}"'
    free = kind.model_copy(update={"minimum": 1, "maximum": high - low})
    try:
        step = _Number(number.name, free).read(text)
        # Counted before they are made: a stranger's range may have billions.
        if step > 0 and (count := (high - low) // step + 1) > 1000:
            raise _Wrong("step", f"{actual}, which makes {count} levels; expected at most 1000")
        return stepped(low, high, step)
    except (RequestError, ValueError):
        raise _Wrong("step", f"{actual}; expected between 1 and the whole range, {high - low}") from None

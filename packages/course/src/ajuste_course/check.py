"""Check a sheet against the studies that it names: every value that can be drawn, every figure that it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, get_args

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import RequestError
from ajuste.run.experiment import resolved_study
from ajuste.run.testbed import RunOptions
from ajuste.study.problem import nearest
from ajuste.study.resolved import ResolvedStudy
from ajuste_course.sheet import (
    AskStep,
    MeasureStep,
    PredictStep,
    Sheet,
    SimulateStep,
    figures_of,
    filled,
    step_name,
)
from ajuste_course.simulation import METRIC, made_configuration, made_data
from ajuste_course.student import Drawn, drawn
from ajuste_course.study import configuration_name, student_study
from ajuste_stats.terms import Word

_WORDS: Final = {
    "verdict": get_args(Word),
    "three-sigma": ("differs", "same"),
}


def checked_studies(sheet: Sheet, student: str, known: Catalogue, options: RunOptions) -> dict[str, list[str]]:
    """Return the configurations of each study for one student. Raises RequestError for a value, configuration, metric
    or word that does not exist, for this student or with any value that another one can get.
    """
    for question in sheet.kind(AskStep):
        _check_values(question)
    named: dict[str, list[str]] = {}
    for number, values in enumerate(_draws(sheet, student)):
        studies = {}
        for step in sheet.kind(MeasureStep):
            resolved = resolved_study(student_study(sheet, step, student, 1, known, values), known, options)
            studies[step.name] = resolved
            if not number:
                named[step.name] = list(resolved.names)
        for made in sheet.kind(SimulateStep):
            made_data(sheet, made, student, 1)
        _check_figures(sheet, values, studies)
    return named


def _draws(sheet: Sheet, student: str) -> Iterator[Drawn]:
    # The student's own values, then each value of each draw at least once.
    values = drawn(sheet, student)
    yield values
    most = max((len(draw.values) for draw in sheet.draw.values()), default=0)
    for place in range(most):
        turned = {
            name: tuple(draw.values[(place + pick) % len(draw.values)] for pick in range(draw.take))
            for name, draw in sheet.draw.items()
        }
        yield {**values, **turned}


def _check_values(step: AskStep) -> None:
    words = _WORDS.get(step.figure.of) if step.figure is not None else None
    for value in step.values if words else ():
        for word in value.split("|"):
            if word not in words:  # type: ignore[operator]
                raise RequestError(
                    f"{step.name}: values: found {word!r} for {step.figure.of if step.figure else ''}"
                    f"{nearest(word, list(words or ()))}; expected {', '.join(words or ())}"
                )


def _check_figures(sheet: Sheet, values: Drawn, studies: dict[str, ResolvedStudy]) -> None:
    for name, study, metric, configuration in _references(sheet):
        wanted = str(filled(configuration, {**values, "seed": ("",)}))
        try:
            if study in studies:
                resolved = studies[study]
                configuration_name(resolved, wanted)
                metrics = [each.name for each in (*resolved.deciding, *resolved.described)]
            else:
                made_configuration(wanted)
                metrics = [METRIC]
        except RequestError as failure:
            raise RequestError(f"{name}: {failure.message}", hint=failure.hint) from failure
        if metric and metric not in metrics:
            raise RequestError(
                f"{name}: {study} does not measure {metric!r}{nearest(metric, metrics)}",
                hint="name it under metrics or describe of the study's analysis",
            )


def _references(sheet: Sheet) -> Iterator[tuple[str, str, str, str]]:
    for step in sheet.steps:
        if isinstance(step, PredictStep):
            yield step.name, step.study, step.metric, step.configuration
        elif isinstance(step, MeasureStep):
            for expected in step.expect:
                yield f"{step.name}: expect", step.name, expected.metric, expected.configuration
        for figure in figures_of(step):
            yield step_name(step), figure.study, figure.metric, figure.configuration

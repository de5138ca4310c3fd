"""The study that a step of a sheet is for one student, and its configurations by the names that the sheet uses."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import tomlkit

from ajuste.catalogue.loader import Catalogue
from ajuste.kernel.spec import parse_study_spec
from ajuste.model.error import RequestError
from ajuste.study.builtin import find_study
from ajuste.study.overrides import with_factor_levels, with_parameters, without_levels
from ajuste.study.problem import StudySource
from ajuste.study.read import checked_study, read_toml
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy
from ajuste.study.schema import Study
from ajuste_course.sheet import MeasureStep, Sheet
from ajuste_course.student import Drawn, drawn, filled_for

_MOST_FACTORS: Final = 4


def student_study(
    sheet: Sheet, step: MeasureStep, student: str, seed: int, known: Catalogue, drawn_values: Drawn | None = None
) -> Study:
    """Return the study that ``student`` measures, with ``drawn_values`` instead of the student's if given.

    Raises RequestError for one that is not of guests with an exact clock: nobody could check its figures.
    """
    values = {**(drawn_values or drawn(sheet, student)), "seed": (seed,)}
    table = filled_for(step, values)
    try:
        study = _study(
            table, re.sub(r"[^a-z0-9]+", "-", f"{sheet.name}-{step.name}-{student.lower()}").strip("-"), known
        )
    except RequestError as failure:
        where = f"step {step.name} of the sheet {sheet.name}"
        raise RequestError(f"{where}: {failure.message}", hint=failure.hint) from failure
    if study.target.on_host or study.target.clock != "virtual":
        raise RequestError(
            f"step {step.name} of the sheet {sheet.name} does not measure in guests under the virtual clock",
            hint="name a kernel and the clock in [step.study.target]",
        )
    return study.with_choices(seed=seed)


def _study(step: MeasureStep, name: str, known: Catalogue) -> Study:
    document: dict[str, Any] = {"schema": 1}
    if step.base:
        document, _ = read_toml(find_study(step.base), "study file", "list the built-in studies with `ajuste studies`")
    document = _merged(document, step.study) | {"name": name}
    source = StudySource(Path(f"{name}.toml"), tomlkit.dumps(document))
    study = checked_study(document, source, known, parse_kernel=parse_study_spec)
    study = with_factor_levels(study, [_assignment(*each) for each in step.levels.items()], known, parse_study_spec)
    study = without_levels(study, [f"{factor}={level}" for factor, levels in step.without.items() for level in levels])
    return with_parameters(study, {name: str(value) for name, value in step.parameters.items()}, known)


def _assignment(factor: str, levels: Sequence[object]) -> str:
    # Names of settings may have commas, and stand between semicolons then.
    words = list(map(str, levels))
    return f"{factor}={(';' if any(',' in word for word in words) else ',').join(words)}"


def _merged(base: Any, changes: Any) -> Any:
    # Tables are merged field by field; any other value replaces what the base has.
    if isinstance(base, Mapping) and isinstance(changes, Mapping):
        return {**base, **{name: _merged(base.get(name), value) for name, value in changes.items()}}
    return changes


def configuration_name(resolved: ResolvedStudy, wanted: str) -> str:
    """Return the name of a configuration that a sheet names by its levels as it writes them, in any order; empty: the
    baseline. Raises RequestError.
    """
    names = {alias: each.configuration.name for each in resolved.configurations for alias in _aliases(resolved, each)}
    if not wanted:
        return next(each.configuration.name for each in resolved.configurations if each.configuration.baseline)
    if wanted not in names:
        listed = "; ".join(each.configuration.name for each in resolved.configurations)
        raise RequestError(f"{resolved.study.name} has no configuration {wanted!r}; expected one of {listed}")
    return names[wanted]


def _aliases(resolved: ResolvedStudy, each: ResolvedConfiguration) -> Iterator[str]:
    yield each.configuration.name
    levels = each.configuration.levels
    pairs = []
    for table, factor in zip(resolved.study.factors, resolved.factors, strict=True):
        level = levels[factor.name]
        written = table.levels[factor.levels.index(level)]
        pairs.append({f"{name}={text}" for name in (table.name, factor.name) for text in (level, written)} | {written})
    if len(pairs) <= _MOST_FACTORS:
        for ordered in itertools.permutations(pairs):
            yield from (" ".join(words) for words in itertools.product(*ordered))

"""From a study to all its configurations on given kernels. Pure, but for finding programs, which is passed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

from ajuste.catalogue.level import check_parameter
from ajuste.catalogue.loader import Catalogue
from ajuste.model.configuration import KERNEL_FACTOR, Configuration, Factor
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Write
from ajuste.model.tunable import CgroupLimit, ProcessAttribute, ScratchAttribute
from ajuste.study.check import parameter_of
from ajuste.study.commands import Commands
from ajuste.study.explain import explain, successor_notes
from ajuste.study.files import study_files
from ajuste.study.knob import Knob, knob
from ajuste.study.measures import Measures, measures
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy
from ajuste.study.schema import FactorTable, Study
from ajuste.study.shares import wants_shares
from ajuste.study.site import GUEST, Site

FindProgram = Callable[[str], str | None]
"""From a program's name to its absolute path on this machine, like ``shutil.which``."""

HOST_KERNEL = ""
"""Stands for the kernel of a host, which needs no spec."""

MOST_CONFIGURATIONS = 10_000

Knobs = dict[str, Knob]
"""The knob of one factor by kernel spec."""


def resolve(
    study: Study,
    catalogue: Catalogue,
    kernels: Mapping[str, KernelVersion],
    find_program: FindProgram,
    site: Site = GUEST,
) -> ResolvedStudy:
    """Every configuration of ``study``, its full factorial in the order of factors and levels.

    ``kernels`` has the version of each spec in ``study.kernels``, for a host that of ``HOST_KERNEL``. Commands are run
    at ``site``. Raises RequestError for a tunable that a kernel does
    not have, a level out of a successor's range, and a program that is not on this machine.
    """
    knobs = [_knobs(index, study, catalogue, kernels) for index in range(len(study.factors))]
    factors = tuple(_factor(table, own, study, catalogue) for table, own in zip(study.factors, knobs, strict=True))
    count = 1
    for factor in factors:
        count *= len(factor.levels)
    if count > MOST_CONFIGURATIONS:
        raise RequestError(
            f"the levels make {count} configurations; at most {MOST_CONFIGURATIONS} can be compared",
            place=study.place("factor"),
        )
    commands = Commands(study, catalogue, find_program, site)
    configurations = tuple(
        _configuration(study, factors, knobs, levels, commands, catalogue)
        for levels in product(*(factor.levels for factor in factors))
    )
    return _assemble(study, factors, knobs, configurations, commands, measures(study, catalogue), catalogue)


def _assemble(
    study: Study,
    factors: tuple[Factor, ...],
    knobs: list[Knobs],
    configurations: tuple[ResolvedConfiguration, ...],
    commands: Commands,
    found: Measures,
    catalogue: Catalogue,
) -> ResolvedStudy:
    return ResolvedStudy(
        study=study,
        factors=factors,
        configurations=configurations,
        deciding=found.deciding,
        described=found.described,
        counters=found.counters,
        parser=found.parser,
        patterns=found.patterns,
        shares=wants_shares(study),
        rule=catalogue.rules.get(study.analysis.prediction or ""),
        programs=commands.programs,
        files={name: str(path.absolute()) for name, path in study_files(study).items()},
        explained=explain(study, [tuple(own.values()) for own in knobs], factors, catalogue),
        notes=successor_notes([tuple(own.items()) for own in knobs]),
    )


def _knobs(index: int, study: Study, catalogue: Catalogue, kernels: Mapping[str, KernelVersion]) -> Knobs:
    table = study.factors[index]
    if table.name == KERNEL_FACTOR or parameter_of(table):
        return {}
    asked = catalogue.find_tunable(table.name)
    found: Knobs = {}
    for spec in study.kernels or (HOST_KERNEL,):
        try:
            found[spec] = knob(asked, kernels[spec], catalogue, successor=table.successor)
        except RequestError as failure:
            place = study.place("factor", index, "name")
            raise RequestError(failure.message, hint=failure.hint, place=place) from None
        _check_levels(index, study, found[spec], catalogue)
    return found


def _check_levels(index: int, study: Study, own: Knob, catalogue: Catalogue) -> None:
    """A successor can have another range than the tunable that the levels were checked against."""
    for number, level in enumerate(study.factors[index].levels):
        try:
            catalogue.check_level(own.tunable, level, own.version)
        except RequestError as failure:
            place = study.place("factor", index, "levels", number)
            raise RequestError(failure.message, hint=failure.hint, place=place) from None


def _factor(table: FactorTable, knobs: Knobs, study: Study, catalogue: Catalogue) -> Factor:
    """The factor by the names of what is really varied: several, with slashes, where kernels differ in that."""
    names = list(dict.fromkeys(own.tunable.name for own in knobs.values())) or [table.name]

    def text(level: str) -> str:
        if knobs:
            return catalogue.check_level(next(iter(knobs.values())).tunable, level)
        if parameter := parameter_of(table):
            kind = catalogue.find_workload(study.workload.kind or "")
            return check_parameter(table.name, kind.parameters[parameter], level)
        return level

    return Factor(name="/".join(names), levels=tuple(map(text, table.levels)), baseline=text(table.baseline_level))


def _configuration(
    study: Study,
    factors: tuple[Factor, ...],
    knobs: list[Knobs],
    levels: tuple[str, ...],
    commands: Commands,
    catalogue: Catalogue,
) -> ResolvedConfiguration:
    chosen = {table.name: level for table, level in zip(study.factors, levels, strict=True)}
    kernel = chosen.get(KERNEL_FACTOR) or study.target.kernel or ""
    names, writes = [], []
    attributes: dict[str, str] = {}
    parameters: dict[str, str] = {}
    for table, own, level in zip(study.factors, knobs, levels, strict=True):
        names.append(f"{own[kernel].tunable.name if own else table.name}={level}")
        if parameter := parameter_of(table):
            parameters[parameter] = level
        elif own and isinstance(location := own[kernel].location, ProcessAttribute):
            attributes[location.name] = level
        elif own and isinstance(location, CgroupLimit | ScratchAttribute):
            raise RequestError(f"{own[kernel].tunable.name} cannot be varied in this version")
        elif own:
            tunable = own[kernel].tunable
            writes.append(Write(tunable=tunable.name, location=location, value=catalogue.check_level(tunable, level)))
    background, loads = commands.background(_as_written(study, factors, levels))
    return ResolvedConfiguration(
        configuration=Configuration(
            name=" ".join(names),
            levels={factor.name: level for factor, level in zip(factors, levels, strict=True)},
            baseline=all(level == factor.baseline for factor, level in zip(factors, levels, strict=True)),
        ),
        kernel=kernel,
        writes=tuple(writes),
        workload=commands.workload(parameters, attributes),
        background=background,
        loads=loads,
    )


def _as_written(study: Study, factors: tuple[Factor, ...], levels: tuple[str, ...]) -> dict[str, str]:
    """The levels of a configuration by factor, as the study has them."""
    return {
        table.name: table.levels[factor.levels.index(level)]
        for table, factor, level in zip(study.factors, factors, levels, strict=True)
    }

"""Whether a study makes sense: names that exist, levels in range, a baseline among the levels.

All that needs no kernel; what depends on the kernel's version is found by ``study.resolve``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ajuste.catalogue.level import check_parameter
from ajuste.catalogue.loader import Catalogue
from ajuste.model.configuration import KERNEL_FACTOR
from ajuste.model.error import RequestError
from ajuste.model.tunable import Tunable
from ajuste.model.workload import WorkloadKind
from ajuste.parse.pattern import check_pattern
from ajuste.study.cpus import parse_cpus
from ajuste.study.location import Path
from ajuste.study.problem import Problem, nearest
from ajuste.study.schema import AttributesTable, BackgroundTable, FactorTable, Study, TargetTable, WorkloadTable
from ajuste.study.shares import share_metrics

WORKLOAD_PREFIX = "workload."
OF_A_GUEST = ("kernel", "instruction_ns", "cpus", "memory_mib", "modules", "kernel_arguments")
"""Fields of the table target that a host does not have."""

ParseKernel = Callable[[str], object]
"""Raises RequestError for what is no kernel spec."""

Accept = Callable[[str], str]
"""From a level as it was given to how it is written. Raises RequestError."""


def check(study: Study, catalogue: Catalogue, parse_kernel: ParseKernel = str) -> list[Problem]:
    """All problems of ``study`` that can be known without a kernel; an empty list if there are none."""
    return [
        *_factors(study, catalogue, parse_kernel),
        *_job(("workload",), study.workload, study, catalogue),
        *_patterns(study.workload),
        *(
            problem
            for index, load in enumerate(study.workload.background)
            for problem in (
                *_job(("workload", "background", index), load, study, catalogue),
                *_when(("workload", "background", index, "when"), load, study),
            )
        ),
        *_target(study, parse_kernel),
        *_metrics(study, catalogue),
        *_prediction(study, catalogue),
    ]


def parameter_of(factor: FactorTable) -> str | None:
    """The workload parameter that a factor varies, if it does."""
    return factor.name.removeprefix(WORKLOAD_PREFIX) if factor.name.startswith(WORKLOAD_PREFIX) else None


def _factors(study: Study, catalogue: Catalogue, parse_kernel: ParseKernel) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, factor in enumerate(study.factors):
        path: Path = ("factor", index)
        if factor.name in seen:
            yield Problem((*path, "name"), f'"{factor.name}" is a factor already; each can be varied only once')
        seen.add(factor.name)
        accept = _level_check(path, factor, study, catalogue, parse_kernel)
        if isinstance(accept, Problem):
            yield accept
        else:
            yield from _levels(path, factor, accept)


def _level_check(
    path: Path, factor: FactorTable, study: Study, catalogue: Catalogue, parse_kernel: ParseKernel
) -> Accept | Problem:
    """What accepts or refuses a level of this factor, or what is wrong with the factor itself."""
    if factor.name == KERNEL_FACTOR:
        return lambda text: (parse_kernel(text), text)[1]
    if parameter := parameter_of(factor):
        kind = catalogue.workloads.get(study.workload.kind or "")
        if kind is None:
            return Problem((*path, "name"), "only the parameters of a workload of the catalogue can be varied")
        if parameter not in kind.parameters:
            return Problem((*path, "name"), _no_parameter(kind, parameter))
        return lambda text: check_parameter(f"{kind.name}'s {parameter}", kind.parameters[parameter], text)
    try:
        tunable = catalogue.find_tunable(factor.name)
    except RequestError as failure:
        return Problem((*path, "name"), failure.message, failure.hint)
    return lambda text: _check_level(tunable, text, study, catalogue)


def _check_level(tunable: Tunable, text: str, study: Study, catalogue: Catalogue) -> str:
    level = catalogue.check_level(tunable, text)
    if tunable.type == "cpu-list":
        _check_cpus(level, study)
    return level


def _check_cpus(text: str, study: Study) -> None:
    """Which CPUs a host has is only known there; ``study.resolve`` looks."""
    if study.target.kind == "host":
        return
    beyond = [cpu for cpu in parse_cpus(text) if cpu >= study.target.cpus]
    if beyond:
        last = study.target.cpus - 1
        raise RequestError(f'"{text}" names CPU {beyond[0]}, but the target has {study.target.cpus} (0 … {last})')


def _levels(path: Path, factor: FactorTable, accept: Accept) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, text in enumerate(factor.levels):
        try:
            level = accept(text)
        except RequestError as failure:
            yield Problem((*path, "levels", index), failure.message, failure.hint)
            continue
        if level in seen:
            yield Problem((*path, "levels", index), f'"{text}" is among the levels already')
        seen.add(level)
    if factor.baseline is None or factor.baseline in factor.levels:
        return
    try:
        known = accept(factor.baseline) in seen
    except RequestError:
        known = False
    if not known:
        levels = ", ".join(factor.levels)
        yield Problem((*path, "baseline"), f'"{factor.baseline}" is not among the levels; expected one of {levels}')


def _job(path: Path, job: WorkloadTable | BackgroundTable, study: Study, catalogue: Catalogue) -> Iterator[Problem]:
    yield from _attributes((*path, "attributes"), job.attributes, study)
    if job.kind is None:
        return
    kind = catalogue.workloads.get(job.kind)
    if kind is None:
        known = sorted(catalogue.workloads)
        near = nearest(job.kind, known) or f"; expected one of {', '.join(known)}"
        yield Problem((*path, "kind"), f'there is no workload "{job.kind}"{near}')
        return
    if kind.endless and isinstance(job, WorkloadTable):
        yield Problem((*path, "kind"), f'"{job.kind}" never ends by itself; it can only be a background load')
    for name, value in job.parameters.items():
        where = (*path, "parameters", name)
        if name not in kind.parameters:
            yield Problem(where, _no_parameter(kind, name))
            continue
        try:
            check_parameter(f"{kind.name}'s {name}", kind.parameters[name], value)
        except RequestError as failure:
            yield Problem(where, failure.message, failure.hint)


def _when(path: Path, load: BackgroundTable, study: Study) -> Iterator[Problem]:
    factors = {factor.name: factor.levels for factor in study.factors}
    for name, wanted in load.when.items():
        if name not in factors:
            near = nearest(name, list(factors)) or f"; expected one of {', '.join(factors) or 'none: there are none'}"
            yield Problem((*path, name), f'"{name}" is no factor of this study{near}')
            continue
        for level in wanted:
            if level not in factors[name]:
                yield Problem((*path, name), f'"{level}" is not among the levels of {name}: {", ".join(factors[name])}')


def _no_parameter(kind: WorkloadKind, name: str) -> str:
    known = list(kind.parameters)
    near = nearest(name, known) or (f"; expected one of {', '.join(known)}" if known else "; it has none")
    return f'"{kind.name}" has no parameter "{name}"{near}'


def _attributes(path: Path, attributes: AttributesTable, study: Study) -> Iterator[Problem]:
    if attributes.affinity is not None:
        try:
            _check_cpus(attributes.affinity, study)
        except RequestError as failure:
            yield Problem((*path, "affinity"), failure.message)
    varied = any(factor.name == "policy" for factor in study.factors)
    if attributes.priority is not None and attributes.policy not in ("fifo", "rr") and not varied:
        yield Problem((*path, "priority"), 'a priority needs policy = "fifo" or "rr"')


def _patterns(workload: WorkloadTable) -> Iterator[Problem]:
    if workload.metrics and workload.command is None:
        yield Problem(("workload", "metric"), "metrics of one's own are read from a command of one's own; use command")
    for index, metric in enumerate(workload.metrics):
        if metric.pattern is None:
            continue
        try:
            check_pattern(metric.pattern)
        except RequestError as failure:
            yield Problem(("workload", "metric", index, "pattern"), failure.message, failure.hint)


def _target(study: Study, parse_kernel: ParseKernel) -> Iterator[Problem]:
    target = study.target
    varied = any(factor.name == KERNEL_FACTOR for factor in study.factors)
    if target.kind == "host":
        yield from _host(study, varied=varied)
        return
    if varied and target.kernel is not None:
        yield Problem(("target", "kernel"), "the kernel is a factor of this study; leave it out here")
    if not varied and target.kernel is None:
        yield Problem(("target", "kernel"), 'is missing; expected something like "debian:5.10"')
    if target.kernel is not None:
        try:
            parse_kernel(target.kernel)
        except RequestError as failure:
            yield Problem(("target", "kernel"), failure.message, failure.hint)


def _host(study: Study, *, varied: bool) -> Iterator[Problem]:
    instead = 'kind = "vm" has another kernel and a machine of its own'
    if varied:
        index = [factor.name for factor in study.factors].index(KERNEL_FACTOR)
        yield Problem(("factor", index, "name"), "the host has one kernel, the running one", instead)
    for field in OF_A_GUEST:
        if getattr(study.target, field) != TargetTable.model_fields[field].default:
            yield Problem(("target", field), "belongs to a virtual machine; the host is as it is", instead)


def _prediction(study: Study, catalogue: Catalogue) -> Iterator[Problem]:
    name = study.analysis.prediction
    if name is not None and name not in catalogue.rules:
        near = nearest(name, list(catalogue.rules)) or f"; expected one of {', '.join(catalogue.rules)}"
        yield Problem(("analysis", "prediction"), f'there is no rule "{name}" that predicts anything{near}')


def _metrics(study: Study, catalogue: Catalogue) -> Iterator[Problem]:
    own = [metric.name for metric in study.workload.metrics]
    kind = catalogue.workloads.get(study.workload.kind or "")
    of_kind = [metric.name for metric in kind.metrics] if kind else []
    for index, name in enumerate(own):
        if name in catalogue.metrics or name in own[:index]:
            yield Problem(
                ("workload", "metric", index, "name"), f'there is a metric "{name}" already; choose another name'
            )
    known = [*own, *of_kind, *catalogue.metrics, *(metric.name for metric in share_metrics(study))]
    seen: set[str] = set()
    for field, names in (("metrics", study.analysis.metrics), ("describe", study.analysis.describe or ())):
        for index, name in enumerate(names):
            where = ("analysis", field, index)
            if name not in known:
                near = nearest(name, known) or f"; expected some of {', '.join(known)}"
                yield Problem(where, f'there is no metric "{name}"{near}')
            elif name in seen:
                yield Problem(where, f'"{name}" is named already')
            seen.add(name)

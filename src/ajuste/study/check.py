"""Checks that a study makes sense: names that exist, levels in range, a baseline among the levels.

They need no kernel; what depends on the kernel's version is found by ``study.resolve``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice

from ajuste.catalogue.level import check_parameter, quantity_unit
from ajuste.catalogue.loader import Catalogue
from ajuste.catalogue.programs import with_benchmark_programs
from ajuste.design.combinations import FEWEST
from ajuste.design.goal import constrained_metric, split_objective
from ajuste.model.error import RequestError
from ajuste.model.metric import split_percentile
from ajuste.model.trial import COMMAND_FACTOR, KERNEL_FACTOR
from ajuste.outputs.pattern import check_pattern, check_pointer
from ajuste.outputs.services import service_metrics
from ajuste.study.answerable import check_answerable, check_boots
from ajuste.study.factors import (
    SCHED_EXT,
    ParseKernel,
    check_attributes,
    check_factors,
    names_set,
    no_parameter,
    set_by,
    varies,
)
from ajuste.study.job import BackgroundTable, WorkloadTable
from ajuste.study.metrics import (
    MODELLED,
    PARTS_OF_INSTRUCTIONS,
    can_count_instructions,
    check_modelled,
    check_precision,
    check_timelines,
    find_metric,
    share_metrics,
)
from ajuste.study.problem import MOST_SOUGHT, KeyPath, Problem, named_twice, nearest
from ajuste.study.schema import FactorTable, Study
from ajuste.study.services import check_services
from ajuste.study.site import PREFIX
from ajuste.study.target import TargetTable

# Fields of the table target that a host does not have.
OF_A_GUEST = (
    "kernel",
    "instruction_ns",
    "time",
    "cpus",
    "memory_mib",
    "nodes",
    "turn_us",
    "parallel",
    "topology",
    "perturbation",
    "modules",
    "packages",
    "prove",
    "kernel_arguments",
    "machine",
)

# A grid to be refined: factors with fewer levels are not made coarser; over more factors it has too many points.
FEWEST_LEVELS = 4

MOST_FACTORS = 3

# Limit of lines of an ablation: with more, a block would be hundreds of trials.
MOST_LINES = 60

_EXPECTED = "screening requires two levels of each factor, or three with the baseline in the middle"
_ALL = 'use combine = "all" for every combination, or "one-at-a-time"'


def check(study: Study, catalogue: Catalogue, parse_kernel: ParseKernel = str) -> list[Problem]:
    """Return the problems of ``study`` that can be known without a kernel, all or very many of them."""
    return list(islice(_problems(study, catalogue, parse_kernel), MOST_SOUGHT))


def _problems(study: Study, catalogue: Catalogue, parse_kernel: ParseKernel) -> Iterator[Problem]:
    yield from chain(
        check_factors(study, catalogue, parse_kernel),
        _job(("workload",), study.workload, study, catalogue),
        _variants(study),
        _custom_metrics(study.workload),
        _console_failure(study),
        check_timelines(study),
        (
            problem
            for index, load in enumerate(study.workload.background)
            for problem in (
                *_job(("workload", "background", index), load, study, catalogue),
                *_when(("workload", "background", index, "when"), load.when, study),
            )
        ),
        check_services(study),
        (
            problem
            for index, service in enumerate(study.workload.services)
            for problem in _when(("workload", "service", index, "when"), service.when, study)
        ),
        _target(study, parse_kernel),
        check_boots(study),
        _metrics(study, catalogue),
        check_modelled(study, catalogue),
        _prediction(study, catalogue),
        check_design(study, catalogue),
        check_answerable(study, catalogue),
        check_precision(study),
        _tune(study, catalogue),
        _scratch(study, catalogue),
    )


def _job(path: KeyPath, job: WorkloadTable | BackgroundTable, study: Study, catalogue: Catalogue) -> Iterator[Problem]:
    yield from check_attributes((*path, "attributes"), job.attributes, study)
    if job.kind is None:
        return
    kind = catalogue.workloads.get(job.kind)
    if kind is None:
        known = sorted(catalogue.workloads)
        near = nearest(job.kind, known) or f"; expected one of {', '.join(known)}"
        yield Problem((*path, "kind"), with_benchmark_programs(f'workload "{job.kind}" not found{near}'))
        return
    if kind.endless and isinstance(job, WorkloadTable):
        yield Problem((*path, "kind"), f'"{job.kind}" never ends; use it only as a background load')
    if kind.services and isinstance(job, BackgroundTable):
        yield Problem((*path, "kind"), f'"{job.kind}" needs a server of its own; use it only as the workload')
    tables = {"parameters": job.parameters}
    if isinstance(job, WorkloadTable):
        tables["host_parameters"] = job.host_parameters
    for table, name, value in ((table, *item) for table, parameters in tables.items() for item in parameters.items()):
        where = (*path, table, name)
        if name not in kind.parameters:
            yield Problem(where, no_parameter(kind, name))
            continue
        try:
            check_parameter(f"{kind.name}'s {name}", kind.parameters[name], value)
        except RequestError as failure:
            yield Problem(where, failure.message, failure.hint)


def _when(path: KeyPath, when: Mapping[str, Sequence[str]], study: Study) -> Iterator[Problem]:
    factors = {factor.name: factor.levels for factor in study.factors}
    for name, wanted in when.items():
        if name not in factors:
            near = (
                nearest(name, list(factors))
                or f"; expected one of {', '.join(factors) or 'none, because the study has no factors'}"
            )
            yield Problem((*path, name), f'"{name}" is not a factor of this study{near}')
            continue
        for level in wanted:
            if level not in factors[name]:
                yield Problem(
                    (*path, name), f'"{level}" is not a level of {name}; expected one of {", ".join(factors[name])}'
                )


def _variants(study: Study) -> Iterator[Problem]:
    yield from named_twice("variant", study.workload.variants, ("workload",))
    if study.workload.variants and not varies(study, COMMAND_FACTOR):
        levels = ", ".join(f'"{name}"' for name in dict.fromkeys(variant.name for variant in study.workload.variants))
        yield Problem(
            ("workload", "variant"),
            'variants require the factor "command"',
            f'add [[factor]] name = "command", levels = [{levels}]',
        )


def _console_failure(study: Study) -> Iterator[Problem]:
    pattern, place = study.workload.console_failure, ("workload", "console_failure")
    if not pattern:
        return
    if study.target.on_host:
        yield Problem(place, "requires a guest, whose console it is about", 'use target kind = "vm"')
    try:
        check_pattern(pattern, groups=0)
    except RequestError as failure:
        yield Problem(place, failure.message, failure.hint)


def _custom_metrics(workload: WorkloadTable) -> Iterator[Problem]:
    if workload.metrics and workload.kind is not None:
        yield Problem(("workload", "metric"), "custom metrics require a custom command")
    for index, metric in enumerate(workload.metrics):
        field = "pattern" if metric.pointer is None else "pointer"
        try:
            if metric.pattern is not None:
                check_pattern(metric.pattern)
            if metric.pointer is not None:
                check_pointer(metric.pointer)
        except RequestError as failure:
            yield Problem(("workload", "metric", index, field), failure.message, failure.hint)


def _target(study: Study, parse_kernel: ParseKernel) -> Iterator[Problem]:
    target = study.target
    if target.on_host:
        yield from _host(study)
        return
    varying = next((factor for factor in study.factors if factor.kernels), None)
    everywhere = varying is not None and all(KERNEL_FACTOR in set_by(varying, level) for level in varying.levels)
    if everywhere and target.kernel is not None:
        yield Problem(("target", "kernel"), "conflicts with the factor kernel; remove it here")
    if not everywhere and target.kernel is None:
        yield Problem(("target", "kernel"), 'is required, such as "debian:5.10"')
    if target.kernel is not None:
        try:
            parse_kernel(target.kernel)
        except RequestError as failure:
            yield Problem(("target", "kernel"), failure.message, failure.hint)


def _host(study: Study) -> Iterator[Problem]:
    instead = 'use target kind = "vm"'
    names = [factor.name for factor in study.factors]
    if KERNEL_FACTOR in names:
        index = names.index(KERNEL_FACTOR)
        yield Problem(("factor", index, "name"), "not supported on the host, which runs the running kernel", instead)
    for index, factor in enumerate(study.factors):
        if SCHED_EXT in names_set(factor):
            yield Problem(("factor", index), "BPF schedulers are not supported on the host", instead)
    for field in OF_A_GUEST:
        if getattr(study.target, field) != TargetTable.model_fields[field].default:
            yield Problem(("target", field), "applies only to guests", instead)


def _scratch(study: Study, catalogue: Catalogue) -> Iterator[Problem]:
    if study.scratch is None:
        for index, factor in enumerate(study.factors):
            for name in names_set(factor):
                if name.startswith(PREFIX):
                    yield Problem(
                        ("factor", index),
                        f"{name} requires a file system made for the trial; add [scratch], or --scratch TYPE",
                    )
        return
    for name, level in study.scratch.options.items():
        path: KeyPath = ("scratch", "options", name)
        tunable = catalogue.tunables.get(f"{PREFIX}{name.removeprefix(PREFIX)}")
        if tunable is None:
            known = [known.removeprefix(PREFIX) for known in catalogue.tunables if known.startswith(PREFIX)]
            yield Problem(path, f"unknown option{nearest(name, known) or '; expected ' + ', '.join(known)}")
            continue
        try:
            catalogue.check_level(tunable, level)
        except RequestError as failure:
            yield Problem(path, failure.message, failure.hint)


def _prediction(study: Study, catalogue: Catalogue) -> Iterator[Problem]:
    name = study.analysis.prediction
    if name is not None and name not in catalogue.rules:
        near = nearest(name, list(catalogue.rules)) or f"; expected one of {', '.join(catalogue.rules)}"
        yield Problem(("analysis", "prediction"), f'rule "{name}" not found{near}')


def _metrics(study: Study, catalogue: Catalogue) -> Iterator[Problem]:
    custom = [metric.name for metric in study.workload.metrics]
    kind = catalogue.workloads.get(study.workload.kind or "")
    of_kind = [metric.name for metric in kind.metrics] if kind else []
    parts = [metric.name for metric in PARTS_OF_INSTRUCTIONS]
    modelled = [metric.name for metric in MODELLED if metric.name not in catalogue.metrics]
    for index, name in enumerate(custom):
        if name in catalogue.metrics or name in (*parts, *modelled, *custom[:index]):
            yield Problem(
                ("workload", "metric", index, "name"), f'the metric "{name}" already exists; choose another name'
            )
    timed = [timeline.name for timeline in study.workload.timelines]
    for index, name in enumerate(timed):
        if name in catalogue.metrics or name in (*parts, *modelled, *custom, *of_kind, *timed[:index]):
            yield Problem(
                ("workload", "timeline", index, "name"), f'the metric "{name}" already exists; choose another name'
            )
    shares = [metric.name for metric in share_metrics(study)]
    served = [metric.name for metric in service_metrics(study.workload.service_names)]
    known = [*custom, *timed, *of_kind, *catalogue.metrics, *parts, *modelled, *shares, *served]
    seen: set[tuple[str, float | None]] = set()
    for field, names in (("metrics", study.analysis.metrics), ("describe", study.analysis.describe or ())):
        for index, name in enumerate(names):
            where = ("analysis", field, index)
            column, quantile = split_percentile(name) if name not in known else (name, None)
            if column not in known:
                near = nearest(name, known) or f"; expected some of {', '.join(known)}"
                yield Problem(where, f'metric "{name}" not found{near}')
            elif column in parts and not can_count_instructions(study):
                yield Problem(where, f'metric "{name}" requires a guest with the virtual clock')
            elif (column, quantile) in seen:
                yield Problem(where, f'"{name}" is given twice; expected different metrics')
            seen.add((column, quantile))
    described = study.analysis.describe
    measured = [*study.analysis.metrics, *(known if described is None else described)]
    for index, figure in enumerate(study.expect.figures if study.expect else ()):
        if figure.metric not in measured:
            near = nearest(figure.metric, measured) or f"; expected one of {', '.join(study.analysis.metrics)}"
            yield Problem(("expect", "figure", index, "metric"), f'the study does not measure "{figure.metric}"{near}')


def _tune(study: Study, catalogue: Catalogue) -> Iterator[Problem]:
    for field, names in (("objectives", study.tune.objectives), ("constraints", study.tune.constraints)):
        for index, text in enumerate(names):
            try:
                name = split_objective(text)[0] if field == "objectives" else constrained_metric(text)
                find_metric(name, study, catalogue)
            except RequestError as failure:
                yield Problem(("tune", field, index), failure.message, failure.hint)


# Whether a study's design can be carried out with its factors.


def check_design(study: Study, catalogue: Catalogue) -> Iterator[Problem]:
    """Yield the problems of the table ``design``, and of factors that do not suit it."""
    if study.design.allocation == "refine":
        yield from _refined(study)
    if study.design.combine == "ablation":
        yield from _ablation(study)
    if study.design.allocation == "best":
        yield from _best(study, catalogue)
    if study.design.combine != "screening":
        return
    if study.design.allocation == "undecided":
        yield Problem(("design", "allocation"), "screening requires complete blocks", 'set allocation = "all"')
    yield from _no_quantiles("screening", study)
    varied = [(index, factor) for index, factor in enumerate(study.factors) if len(factor.levels) > 1]
    if not varied:
        yield Problem(
            ("design", "combine"), "there is nothing to screen; expected factors with at least two levels", _ALL
        )
        return
    levels = 3 if len(varied[0][1].levels) == 3 else 2
    wrong = [problem for index, factor in varied for problem in _level_problems(index, factor, levels)]
    yield from wrong
    if not wrong and len(varied) < FEWEST[levels]:
        yield Problem(
            ("design", "combine"),
            f"screening is for {FEWEST[levels]} factors or more that have {levels} levels; of these {len(varied)}, all "
            f"combinations are only {levels ** len(varied)} configurations",
            _ALL,
        )


def _no_quantiles(design: str, study: Study) -> Iterator[Problem]:
    for index, name in enumerate(study.analysis.metrics):
        if split_percentile(name)[1] is not None:
            message = f"{design} does not support quantiles such as {name}; use a mean"
            yield Problem(("analysis", "metrics", index), message)


def _refined(study: Study) -> Iterator[Problem]:
    # Return whether the levels make a grid with a surface over it, and replicates tell its noise.
    whole = 'set allocation = "all" to measure every combination'
    where: KeyPath = ("design", "allocation")
    if study.design.combine != "all":
        yield Problem(where, f'refine requires combine = "all"; found "{study.design.combine}"')
    varied = [(index, factor) for index, factor in enumerate(study.factors) if len(factor.levels) > 1]
    if not 1 <= len(varied) <= MOST_FACTORS:
        message = f"{len(varied)} factors have several levels"
        yield Problem(where, f"{message}; refine supports between one and {MOST_FACTORS}", whole)
    elif all(len(factor.levels) < FEWEST_LEVELS for _, factor in varied):
        yield Problem(
            where, f"there is nothing to refine; expected a factor with at least {FEWEST_LEVELS} levels", whole
        )
    for index, factor in varied:
        if factor.settings or not all(quantity_unit(level) or _is_number(level) for level in factor.levels):
            yield Problem(
                ("factor", index, "levels"),
                f"{factor.name} has levels that are not numbers; refine requires numbers",
                whole,
            )
    yield from _no_quantiles("refine", study)
    if study.budget.min_blocks < 2:
        yield Problem(("budget", "min_blocks"), "found 1; refine requires at least 2 blocks to estimate the noise")


def _best(study: Study, catalogue: Catalogue) -> Iterator[Problem]:
    # Return whether there is a best one to be looked for.
    if study.design.judges_effects:
        where: KeyPath = ("design", "allocation")
        yield Problem(where, f"{study.design.combine} requires complete blocks", 'set allocation = "all"')
    if not study.analysis.metrics:
        return
    name, first = study.analysis.metrics[0], ("analysis", "metrics", 0)
    if split_percentile(name)[1] is not None:
        yield Problem(first, f"best does not support quantiles such as {name}; use a mean")
        return
    with suppress(RequestError):  # An unknown one is reported elsewhere.
        if find_metric(name, study, catalogue).direction == "none":
            yield Problem(
                first,
                f'best requires a metric that is better lower or higher; "{name}" has no better direction',
                'set allocation = "undecided", or name such a metric first',
            )


def _is_number(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def _ablation(study: Study) -> Iterator[Problem]:
    if study.design.allocation == "undecided":
        yield Problem(("design", "allocation"), "ablation requires complete blocks", 'set allocation = "all"')
    yield from _no_quantiles("ablation", study)
    for index, factor in enumerate(study.factors):
        if len(factor.levels) > 2:
            message = f"{factor.name} has {len(factor.levels)} levels; ablation requires two: without and with the line"
            yield Problem(("factor", index, "levels"), message, _ALL)
    lines = sum(len(factor.levels) == 2 for factor in study.factors)
    if not lines:
        yield Problem(("design", "combine"), "there is nothing to ablate; expected factors with two levels")
    if lines > MOST_LINES:
        yield Problem(("factor",), f"found {lines} lines; ablation supports up to {MOST_LINES}")


def _level_problems(index: int, factor: FactorTable, levels: int) -> Iterator[Problem]:
    if len(factor.levels) != levels:
        message = f"{factor.name} has {len(factor.levels)} levels"
        yield Problem(("factor", index, "levels"), f"{message}; {_EXPECTED}", _ALL)
    elif levels == 3 and factor.baseline_level != factor.levels[1]:
        where = ("factor", index, "baseline" if factor.baseline is not None else "levels")
        yield Problem(where, f"the baseline of {factor.name} is {factor.baseline_level}; {_EXPECTED}", _ALL)

"""Metrics of a study: which it has, which of them decide, and what is needed to measure them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from ajuste.catalogue.loader import Catalogue, figure_sources
from ajuste.model.error import RequestError
from ajuste.model.metric import Metric, split_percentile
from ajuste.model.modelled import ModelledMachine
from ajuste.model.plan import Sampler, chooses
from ajuste.outputs.base import (
    CPU_SHARE,
    EXACT_METRICS,
    MODELLED_METRICS,
    MODELLED_TIME,
    background_share,
)
from ajuste.outputs.services import service_metrics
from ajuste.outputs.timeline_metrics import Timeline
from ajuste.study.job import BackgroundTable, PatternTable, SamplerTable, TimelineTable
from ajuste.study.problem import Problem, nearest
from ajuste.study.schema import Study
from ajuste.study.site import study_directory


def deciding_metrics(study: Study, catalogue: Catalogue) -> tuple[Metric, ...]:
    """Return the metrics that get verdicts."""
    known = _known(study, catalogue)
    return tuple(_named(name, known) for name in study.analysis.metrics)


def described_metrics(study: Study, catalogue: Catalogue) -> tuple[Metric, ...]:
    """Return the metrics that do not decide: the ones that ``study`` names, or all others."""
    known = _known(study, catalogue)
    names = known if study.analysis.describe is None else study.analysis.describe
    return tuple(_named(name, known) for name in names if name not in study.analysis.metrics)


def find_metric(name: str, study: Study, catalogue: Catalogue) -> Metric:
    """Return the metric of that name, which may be a percentile. Raises RequestError for one that ``study`` has not."""
    known = _known(study, catalogue)
    if name not in known and split_percentile(name)[0] not in known:
        near = nearest(name, list(known)) or f"; expected one of {', '.join(known)}"
        raise RequestError(
            f'metric "{name}" not found{near}', hint="use a metric of the study, of its workload or of the catalogue"
        )
    return _named(name, known)


def _known(study: Study, catalogue: Catalogue) -> dict[str, Metric]:
    # The command's own, those of the workload's kind, and those that every trial has.
    kind = catalogue.workloads.get(study.workload.kind or "")
    return {
        metric.name: metric
        for metric in (
            *map(custom_metric, study.workload.metrics),
            *timeline_metrics(study),
            *(kind.metrics if kind else ()),
            *catalogue.metrics.values(),
            *(share_metrics(study) if wants_shares(study) else ()),
            *service_metrics(study.workload.service_names),
            *(PARTS_OF_INSTRUCTIONS if wants_instructions(study) else ()),
            *(MODELLED if wants_modelled(study) else ()),
        )
    }


def _named(name: str, known: Mapping[str, Metric]) -> Metric:
    # A metric, or a percentile of one as `elapsed@p95`.
    column, quantile = split_percentile(name)
    return known[name] if name in known or quantile is None else known[column].at(quantile)


def custom_metric(table: PatternTable) -> Metric:
    """Return a metric of a custom command."""
    return Metric(
        name=table.name,
        title=table.title or table.name,
        unit=table.unit,
        direction=table.direction,
        scale=table.scale,
        resolution=table.resolution,
        what=f"read from the command's {table.stream} "
        + (f"by the pattern {table.pattern}" if table.pattern is not None else f"at {table.pointer}"),
    )


# The metrics of a study that are shares of the CPU. They are measured only where the study names one of them.


# Unit of shares of the CPU, not just %: a difference of shares would read like a change relative to the baseline.
UNIT: Final = "% CPU"


def share_metrics(study: Study) -> tuple[Metric, ...]:
    """Return the workload's share and that of each background load, in the study's order."""
    share = Metric(
        name=CPU_SHARE,
        title="Share of the CPU",
        unit=UNIT,
        direction="none",
        scale="difference",
        what="CPU time that the workload got, by the time for which it ran: 100 % is one whole CPU.",
    )
    loads = study.workload.background
    return (share, *(_of_load(number, load) for number, load in enumerate(loads, 1)))


def wants_shares(study: Study) -> bool:
    """Return whether the study asks for any of them."""
    requested = (*study.analysis.metrics, *(study.analysis.describe or ()))
    return any(name.startswith(CPU_SHARE) for name in requested)


# What the lens counts under the virtual clock, in trials of a study that names any of it. Elsewhere the same names are
# of what the hardware counts; the parts are not there.


PARTS_OF_INSTRUCTIONS: Final = tuple(
    Metric(
        name=f"{space}-instructions",
        title=f"Instructions in {where}",
        unit="",
        direction="lower",
        resolution=1,
        what=f"Instructions that the workload's tasks carried out in {where}.",
    )
    for space, where in (("user", "user space"), ("kernel", "the kernel"))
)


def _modelled(name: str, title: str, what: str, unit: str = "") -> Metric:
    # A count may be 0.
    return Metric(
        name=name,
        title=f"{title} (modelled)",
        unit=unit,
        direction="lower",
        scale="ratio" if unit else "difference",
        resolution=0 if unit else 1,
        what=f"{what}, on the modelled machine.",
    )


# Metrics that trials have for which a machine is modelled.
MODELLED: Final = (
    _modelled(MODELLED_TIME, "Time", "Instructions at the machine's best rate, and the latency of every miss", "s"),
    _modelled("l1d-misses", "L1 data cache misses", "Lines of data that were not in the first level"),
    _modelled("l1i-misses", "L1 instruction cache misses", "Lines of code that were not in the first level"),
    _modelled("l2-misses", "L2 cache misses", "Lines that were not in the second level either"),
    _modelled("llc-misses", "Last-level cache misses", "Lines that came from memory"),
    _modelled("coherence-misses", "Coherence misses", "Lines that were there until another CPU stored to them"),
    _modelled("remote-accesses", "Remote accesses", "Lines that came from the memory of another node"),
    _modelled("tlb-misses", "TLB misses", "Translations of addresses that no TLB had"),
    _modelled("branch-misses", "Branch misses", "Conditional branches that were predicted wrongly"),
    _modelled("loads", "Loads", "Loads from memory"),
    _modelled("stores", "Stores", "Stores to memory"),
)


def wants_modelled(study: Study) -> bool:
    """Return whether the study asks for any of that. ``branch-misses`` without a machine are those of the hardware."""
    return can_count_instructions(study) and study.target.machine is not None and _wants_any(study, MODELLED_METRICS)


def modelled_machine(study: Study, catalogue: Catalogue) -> ModelledMachine | None:
    """Return the machine that the study names, if any. Raises RequestError."""
    table = study.target.machine
    return None if table is None else catalogue.find_machine(table.model, study_directory(study))


def check_modelled(study: Study, catalogue: Catalogue) -> Iterator[Problem]:
    """Yield a machine that does not exist or fit, and metrics that need one."""
    target, where = study.target, ("target", "machine", "model")
    if target.machine is not None:
        if target.on_host:
            return
        try:
            machine = modelled_machine(study, catalogue)
        except RequestError as failure:
            message = f"{failure.place}: {failure.message}" if failure.place else failure.message
            yield Problem(where, message, failure.hint)
        else:
            if not can_count_instructions(study):
                yield Problem(where, "a machine can be modelled only in a guest with the virtual clock")
            elif machine and (problem := machine.problem_with(target.cpus, target.nodes, target.topology)):
                place = where if target.topology is None else ("target", "topology")
                yield Problem(place, f"{machine.name} does not fit the guest: {problem}")
        return
    for field, names in (("metrics", study.analysis.metrics), ("describe", study.analysis.describe or ())):
        for index, name in enumerate(names):
            if split_percentile(name)[0] in MODELLED_METRICS and split_percentile(name)[0] not in catalogue.metrics:
                yield Problem(
                    ("analysis", field, index),
                    f'metric "{name}" requires a modelled machine',
                    "name one with --machine NAME, or model = NAME in [target.machine]: "
                    f"{', '.join(catalogue.machines)}, or a TOML file of your own",
                )


def _wants_any(study: Study, names: Collection[str]) -> bool:
    requested = (*study.analysis.metrics, *(study.analysis.describe or ()))
    return any(split_percentile(name)[0] in names for name in requested)


def can_count_instructions(study: Study) -> bool:
    """Return whether the lens can look at the study's guests."""
    return study.target.clock == "virtual"


def wants_instructions(study: Study) -> bool:
    """Return whether the study asks for metrics that the lens counts exactly, where it can, or for modelled ones."""
    return wants_modelled(study) or (can_count_instructions(study) and _wants_any(study, EXACT_METRICS))


def _of_load(number: int, load: BackgroundTable) -> Metric:
    what = load.kind or (load.command or ("",))[0]
    return Metric(
        name=background_share(number),
        title=f"Share of background load {number} ({what})",
        unit=UNIT,
        direction="none",
        scale="difference",
        what="CPU time that this load got from its start to the workload's end, by that time: 100 % is one whole CPU.",
    )


# Samplers and timelines of a study: what is wrong with them, and what they come to.


_COUNTED = ("growth", "maximum", "minimum", "last")


def check_timelines(study: Study) -> Iterator[Problem]:
    """Yield samplers of figures that their source lacks, and timelines of figures that no sampler reads."""
    workload = study.workload
    for index, sampler in enumerate(workload.samplers):
        for number, key in enumerate(sampler.keys):
            if problem := _problem_of_key(sampler, key):
                yield Problem(("workload", "sampler", index, "keys", number), problem)
    for index, timeline in enumerate(workload.timelines):
        if problem := _problem_of_timeline(timeline, workload.samplers):
            yield Problem(("workload", "timeline", index, "key"), problem)
        if timeline.source == "process" and timeline.since == "end":
            yield Problem(
                ("workload", "timeline", index, "since"),
                "the workload's process does not exist after its end; expected start",
            )


def _problem_of_key(sampler: SamplerTable, key: str) -> str:
    if not key:
        return 'is empty; expected the name of a figure, or "*" for all'
    if "*" in key[:-1]:
        return f'"{key}" has a * before its end; expected a name, or a prefix followed by *'
    source = figure_sources()[sampler.source]
    if key.endswith("*") or source.find(key):
        return ""
    known = [figure.name for figure in source.figures]
    return f'{sampler.source} has no figure "{key}"{nearest(key, known) or f"; it has {_some(known)}"}'


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (" …" if len(names) > 8 else "")


def _problem_of_timeline(timeline: TimelineTable, samplers: tuple[SamplerTable, ...]) -> str:
    matching = [sampler for sampler in samplers if sampler.source == timeline.source]
    if not matching:
        return f"no sampler reads {timeline.source}; add a [[workload.sampler]] for it"
    if any(chooses(key, timeline.key) for sampler in matching for key in sampler.keys):
        return ""
    keys = [key for sampler in matching for key in sampler.keys]
    near = nearest(timeline.key, keys) or f"; it reads {_some(keys)}"
    return f'the sampler of {timeline.source} does not read "{timeline.key}"{near}'


def resolve_samplers(study: Study) -> tuple[Sampler, ...]:
    """Return the study's samplers as the agent reads them."""
    return tuple(
        Sampler(source=table.source, keys=table.keys, interval_ns=round(table.interval_ms * 1e6))
        for table in study.workload.samplers
    )


def resolve_timelines(study: Study) -> tuple[Timeline, ...]:
    """Return the study's timelines, each with what its figure is."""
    timelines: list[Timeline] = []
    for table in study.workload.timelines:
        figure = figure_sources()[table.source].find(table.key)
        timelines.append(
            Timeline(
                name=table.name,
                source=table.source,
                key=table.key,
                take=table.take,
                fraction=table.fraction,
                since=table.since,
                counter=figure is not None and figure.kind == "counter",
            )
        )
    return tuple(timelines)


def timeline_metrics(study: Study) -> tuple[Metric, ...]:
    """Return the metrics of the study's timelines.

    A delay is known no better than the interval between two readings; figures are whole numbers. The unit is the
    figure's where the study does not say one.
    """
    return tuple(_metric(table, study.workload.samplers) for table in study.workload.timelines)


def _metric(table: TimelineTable, samplers: tuple[SamplerTable, ...]) -> Metric:
    since = f"since the workload's {table.since}"
    part, unit, resolution = "", table.unit, 1.0 if table.take in _COUNTED else 0.0
    if table.take == "delay":
        part = f"until {100 * table.fraction:g} % of its change"
        unit = unit or "s"
        intervals = [sampler.interval_ms for sampler in samplers if sampler.source == table.source]
        resolution = min(intervals, default=0.0) / 1000
    elif not unit:
        figure = figure_sources()[table.source].find(table.key)
        unit = figure.unit if figure else ""
        unit = f"{unit}/s" if table.take == "rate" else unit
    return Metric(
        name=table.name,
        title=table.title or table.name,
        unit=unit,
        direction=table.direction,
        scale=table.scale,
        resolution=resolution,
        what=" ".join(filter(None, (f"the {table.take} of {table.source} {table.key}", part, since))),
    )


def check_precision(study: Study) -> Iterator[Problem]:
    """Return whether there are intervals that a precision can be asked of."""
    design = study.design
    asked_for = design.combine if design.judges_effects else design.allocation
    if study.analysis.precision is not None and asked_for in ("screening", "ablation", "refine", "best"):
        yield Problem(
            ("analysis", "precision"), f"precision is of configurations' intervals; conflicts with {asked_for}"
        )

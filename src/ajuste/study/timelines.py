"""Samplers and timelines of a study: what is wrong with them, and what they come to."""

from __future__ import annotations

from collections.abc import Iterator

from ajuste.catalogue.figures import figure_sources
from ajuste.model.metric import Metric
from ajuste.model.plan import Sampler, chooses
from ajuste.parse.timeline import Timeline
from ajuste.study.job import SamplerTable, TimelineTable
from ajuste.study.problem import Problem, nearest
from ajuste.study.schema import Study

_COUNTED = ("growth", "maximum", "minimum", "last")


def check_timelines(study: Study) -> Iterator[Problem]:
    """Samplers of figures that their source cannot have, timelines of figures that no sampler reads."""
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
                ("workload", "timeline", index, "since"), "the workload's process is gone after its end; use start"
            )


def _problem_of_key(sampler: SamplerTable, key: str) -> str:
    if not key:
        return 'is empty; expected the name of a figure, or "*" for all'
    if "*" in key[:-1]:
        return f'"{key}" has a * that is not at the end; expected a name, or its beginning and a *'
    source = figure_sources()[sampler.source]
    if key.endswith("*") or source.find(key):
        return ""
    known = [figure.name for figure in source.figures]
    return f'{sampler.source} has no figure "{key}"{nearest(key, known) or f"; it has {_some(known)}"}'


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (" …" if len(names) > 8 else "")


def _problem_of_timeline(timeline: TimelineTable, samplers: tuple[SamplerTable, ...]) -> str:
    own = [sampler for sampler in samplers if sampler.source == timeline.source]
    if not own:
        return f"no sampler reads {timeline.source}; add a [[workload.sampler]] for it"
    if any(chooses(key, timeline.key) for sampler in own for key in sampler.keys):
        return ""
    keys = [key for sampler in own for key in sampler.keys]
    near = nearest(timeline.key, keys) or f"; it reads {_some(keys)}"
    return f'the sampler of {timeline.source} does not read "{timeline.key}"{near}'


def resolve_samplers(study: Study) -> tuple[Sampler, ...]:
    """The study's samplers as the agent is told them."""
    return tuple(
        Sampler(source=table.source, keys=table.keys, interval_ns=round(table.interval_ms * 1e6))
        for table in study.workload.samplers
    )


def resolve_timelines(study: Study) -> tuple[Timeline, ...]:
    """The study's timelines, each with what its figure is."""
    return tuple(
        Timeline(
            name=table.name,
            source=table.source,
            key=table.key,
            take=table.take,
            fraction=table.fraction,
            since=table.since,
            counter=_is_counter(table),
        )
        for table in study.workload.timelines
    )


def _is_counter(table: TimelineTable) -> bool:
    figure = figure_sources()[table.source].find(table.key)
    return figure is not None and figure.kind == "counter"


def timeline_metrics(study: Study) -> tuple[Metric, ...]:
    """The metrics of the study's timelines.

    A delay is known no better than the interval between two readings; figures are whole numbers. The unit is the
    figure's where the study does not say one.
    """
    return tuple(_metric(table, study.workload.samplers) for table in study.workload.timelines)


def _metric(table: TimelineTable, samplers: tuple[SamplerTable, ...]) -> Metric:
    since = f"since the workload's {table.since}"
    part = f"until {100 * table.fraction:g} % of its change" if table.take == "delay" else ""
    return Metric(
        name=table.name,
        title=table.title or table.name,
        unit=table.unit or _unit(table),
        direction=table.direction,
        scale=table.scale,
        resolution=_resolution(table, samplers),
        what=" ".join(filter(None, (f"the {table.take} of {table.source} {table.key}", part, since))),
    )


def _unit(table: TimelineTable) -> str:
    if table.take == "delay":
        return "s"
    figure = figure_sources()[table.source].find(table.key)
    unit = figure.unit if figure else ""
    return f"{unit}/s" if table.take == "rate" else unit


def _resolution(table: TimelineTable, samplers: tuple[SamplerTable, ...]) -> float:
    if table.take == "delay":
        own = [s.interval_ms for s in samplers if s.source == table.source]
        return min(own, default=0.0) / 1000
    return 1.0 if table.take in _COUNTED else 0.0

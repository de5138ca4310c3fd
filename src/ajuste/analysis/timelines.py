"""What samplers read in a run: a few trials of each configuration, figure by figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import numpy as np

from ajuste.analysis.pairs import Clean, clean_trials
from ajuste.analysis.record import Points, Record, thin
from ajuste.catalogue.loader import figure_sources
from ajuste.model.event import Event, parse_event
from ajuste.model.plan import SamplerSource
from ajuste.model.results import SampledFigure, SampledLine, TimelineMark
from ajuste.model.trial import Trial
from ajuste.outputs.timeline import Sampling, TimeSeries, sampling
from ajuste.study.resolved import ResolvedStudy

MOST_FIGURES: Final = 8
MOST_CONFIGURATIONS: Final = 8
_OTHER_TRIALS: Final = 2
"""Beside the representative one."""
_MOST_POINTS: Final = 200
_MOST_POINTS_OF_OTHERS: Final = 100
_OF_A_TIMELINE: Final = ('"event":"sample', '"event":"started"', '"event":"exited"')

_Where = tuple[SamplerSource, str]
_Shown = Literal["growth", "rate", "value"]


@dataclass(frozen=True)
class _Read:
    """What was read in one trial."""

    trial: Trial
    found: Sampling
    representative: bool


def timelines(study: ResolvedStudy, record: Record) -> tuple[SampledFigure, ...]:
    """The figures that the study's timelines are taken from, then others that changed; none without samplers.

    Of many configurations those at even distances, with the baseline.
    """
    if not study.samplers:
        return ()
    clean = clean_trials(record.measurements)
    read = [one for name in _shown_configurations(study) for one in _read(study, name, clean, record)]
    figures = (_figure(study, where, read) for where in _figures(study, read))
    return tuple(figure for figure in figures if figure.lines)


def _shown_configurations(study: ResolvedStudy) -> list[str]:
    names = list(study.names)
    if len(names) <= MOST_CONFIGURATIONS:
        return names
    places = {round(step * (len(names) - 1) / (MOST_CONFIGURATIONS - 1)) for step in range(MOST_CONFIGURATIONS)}
    baseline = next(place for place, one in enumerate(study.configurations) if one.configuration.baseline)
    if baseline not in places:
        places = {baseline, *(places - {min(places, key=lambda place: abs(place - baseline))})}
    return [names[place] for place in sorted(places)]


def _read(study: ResolvedStudy, name: str, clean: Clean, record: Record) -> Iterator[_Read]:
    """Of the configuration ``name`` the trial in the middle by the first timeline, and the first others."""
    rows = clean.of(name)
    if not len(rows):
        return
    metric = next((t.name for t in study.timelines if len(clean.values(name, t.name))), "elapsed")
    values = clean.measured.metrics.get(metric, np.zeros(len(clean.measured)))[rows]
    ranked = rows[np.argsort(np.nan_to_num(values), kind="stable")]
    middle = int(ranked[(len(ranked) - 1) // 2])
    others = [int(row) for row in rows if row != middle][:_OTHER_TRIALS]
    for row, trial in zip((middle, *others), record.whole((middle, *others)), strict=True):
        found = sampling(_events(trial))
        if found is not None:
            yield _Read(trial, found, row == middle)


def _events(trial: Trial) -> Iterator[Event]:
    """Those that timelines are made of; the rest, which can be long, is not parsed again."""
    for line in trial.events.splitlines():
        if any(word in line for word in _OF_A_TIMELINE):
            yield parse_event(line)


def _figures(study: ResolvedStudy, read: Sequence[_Read]) -> list[_Where]:
    asked = list(dict.fromkeys((timeline.source, timeline.key) for timeline in study.timelines))
    seen = sorted({where for one in read for where, own in one.found.series.items() if len(set(own.values)) > 1})
    order = [sampler.source for sampler in study.samplers]
    seen.sort(key=lambda where: order.index(where[0]) if where[0] in order else len(order))
    return [*asked, *(where for where in seen if where not in asked)][:MOST_FIGURES]


def _figure(study: ResolvedStudy, where: _Where, read: Sequence[_Read]) -> SampledFigure:
    source, key = where
    known = figure_sources()[source].find(key)
    shown = _shown(study, where)
    unit = known.unit if known else ""
    lines = (_line(one, where, shown, _interval_s(study, source)) for one in read if where in one.found.series)
    return SampledFigure(
        source=source,
        key=key,
        shown=shown,
        unit=f"{unit}/s" if shown == "rate" else unit,
        lines=tuple(line for line in lines if line is not None),
        marks=tuple(_marks(study, where, read)),
    )


def _shown(study: ResolvedStudy, where: _Where) -> _Shown:
    if any((t.source, t.key) == where and t.take == "rate" for t in study.timelines):
        return "rate"
    known = figure_sources()[where[0]].find(where[1])
    return "growth" if known and known.kind == "counter" else "value"


def _interval_s(study: ResolvedStudy, source: SamplerSource) -> float:
    return min((sampler.interval_ns / 1e9 for sampler in study.samplers if sampler.source == source), default=0.0)


def _line(one: _Read, where: _Where, shown: _Shown, interval_s: float) -> SampledLine | None:
    series = one.found.series[where].since(0.0)
    points = _rates(series, interval_s) if shown == "rate" else _points(series, growth=shown == "growth")
    if not points:
        return None
    kept = thin(points, _MOST_POINTS if one.representative else _MOST_POINTS_OF_OTHERS)
    return SampledLine(
        configuration=one.trial.slot.configuration,
        block=one.trial.slot.block,
        end_s=round(one.found.end_s, 6),
        at_s=tuple(round(max(0.0, at_s), 6) for at_s, _ in kept),
        values=tuple(value for _, value in kept),
        representative=one.representative,
    )


def _points(series: TimeSeries, *, growth: bool) -> Points:
    base = series.values[0] if growth else 0
    return [(at_s, float(value - base)) for at_s, value in zip(series.at_s, series.values, strict=True)]


def _rates(series: TimeSeries, interval_s: float) -> Points:
    """The growth by second up to each reading; readings at the workload's ends are too near to others for a rate."""
    kept = [(series.at_s[0], series.values[0])]
    for at_s, value in zip(series.at_s, series.values, strict=True):
        if at_s - kept[-1][0] >= interval_s / 2:
            kept.append((at_s, value))
    return [(until, (after - before) / (until - since)) for (since, before), (until, after) in pairwise(kept)]


def _marks(study: ResolvedStudy, where: _Where, read: Sequence[_Read]) -> Iterator[TimelineMark]:
    for timeline in study.timelines:
        if timeline.take != "delay" or (timeline.source, timeline.key) != where:
            continue
        for one in read:
            delay_s = one.trial.metrics.get(timeline.name)
            if one.representative and delay_s is not None:
                since_s = one.found.end_s if timeline.since == "end" else 0.0
                yield TimelineMark(
                    metric=timeline.name, configuration=one.trial.slot.configuration, at_s=round(since_s + delay_s, 6)
                )

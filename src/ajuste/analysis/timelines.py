"""Timelines, the readings of samplers in a run: a few trials of each configuration, figure by figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import numpy as np

from ajuste.analysis.pairs import Clean, clean_trials
from ajuste.analysis.record import Points, Record, thin
from ajuste.catalogue.loader import figure_sources
from ajuste.model.event import parse_event
from ajuste.model.plan import SamplerSource
from ajuste.model.timeline import SampledFigure, SampledLine, TimelineMark
from ajuste.model.trial import Trial
from ajuste.outputs.timeline_metrics import Sampling, TimeSeries, sampling
from ajuste.study.resolved import ResolvedStudy

MOST_FIGURES: Final = 8
MOST_CONFIGURATIONS: Final = 8
# Beside the representative one.
_OTHER_TRIALS: Final = 2
_MOST_POINTS: Final = 200
_MOST_POINTS_OF_OTHERS: Final = 100
_OF_A_TIMELINE: Final = ('"event":"sample', '"event":"started"', '"event":"exited"')

_Where = tuple[SamplerSource, str]
_Display = Literal["growth", "rate", "value"]


@dataclass(frozen=True)
class _SampledTrial:
    trial: Trial
    samples: Sampling
    representative: bool


def timelines(study: ResolvedStudy, record: Record) -> tuple[SampledFigure, ...]:
    """Return the figures of the study's timelines, then others that changed, of up to eight configurations."""
    if not study.samplers:
        return ()
    clean = clean_trials(record.measurements)
    trials = [sampled for name in _select_configurations(study) for sampled in _read(study, name, clean, record)]
    figures = (_figure(study, where, trials) for where in _figures(study, trials))
    return tuple(figure for figure in figures if figure.lines)


def _select_configurations(study: ResolvedStudy) -> list[str]:
    names = list(study.names)
    if len(names) <= MOST_CONFIGURATIONS:
        return names
    places = {round(step * (len(names) - 1) / (MOST_CONFIGURATIONS - 1)) for step in range(MOST_CONFIGURATIONS)}
    baseline = next(place for place, resolved in enumerate(study.configurations) if resolved.configuration.baseline)
    if baseline not in places:
        places = {baseline, *(places - {min(places, key=lambda place: abs(place - baseline))})}
    return [names[place] for place in sorted(places)]


def _read(study: ResolvedStudy, name: str, clean: Clean, record: Record) -> Iterator[_SampledTrial]:
    # Yield the median trial of the configuration `name` by the first timeline, then the first others.
    rows = clean.of(name)
    if not len(rows):
        return
    metric = next((t.name for t in study.timelines if len(clean.values(name, t.name))), "elapsed")
    values = clean.measured.metrics.get(metric, np.zeros(len(clean.measured)))[rows]
    ranked = rows[np.argsort(np.nan_to_num(values), kind="stable")]
    middle = int(ranked[(len(ranked) - 1) // 2])
    others = [int(row) for row in rows if row != middle][:_OTHER_TRIALS]
    for row, trial in zip((middle, *others), record.whole((middle, *others)), strict=True):
        # The other events, which can be many, are not parsed again.
        lines = (line for line in trial.events.splitlines() if any(word in line for word in _OF_A_TIMELINE))
        samples = sampling(map(parse_event, lines))
        if samples is not None:
            yield _SampledTrial(trial, samples, row == middle)


def _figures(study: ResolvedStudy, trials: Sequence[_SampledTrial]) -> list[_Where]:
    requested = list(dict.fromkeys((timeline.source, timeline.key) for timeline in study.timelines))
    seen = sorted(
        {where for sampled in trials for where, series in sampled.samples.series.items() if len(set(series.values)) > 1}
    )
    order = [sampler.source for sampler in study.samplers]
    seen.sort(key=lambda where: order.index(where[0]) if where[0] in order else len(order))
    return [*requested, *(where for where in seen if where not in requested)][:MOST_FIGURES]


def _figure(study: ResolvedStudy, where: _Where, trials: Sequence[_SampledTrial]) -> SampledFigure:
    source, key = where
    known = figure_sources()[source].find(key)
    display: _Display = "growth" if known and known.kind == "counter" else "value"
    if any((t.source, t.key) == where and t.take == "rate" for t in study.timelines):
        display = "rate"
    interval_s = min((sampler.interval_ns / 1e9 for sampler in study.samplers if sampler.source == source), default=0.0)
    unit = known.unit if known else ""
    lines = (_line(sampled, where, display, interval_s) for sampled in trials if where in sampled.samples.series)
    return SampledFigure(
        source=source,
        key=key,
        shown=display,
        unit=f"{unit}/s" if display == "rate" else unit,
        lines=tuple(line for line in lines if line is not None),
        marks=tuple(_marks(study, where, trials)),
    )


def _line(sampled: _SampledTrial, where: _Where, display: _Display, interval_s: float) -> SampledLine | None:
    series = sampled.samples.series[where].since(0.0)
    if display == "rate":
        points = _rates(series, interval_s)
    else:
        base = series.values[0] if display == "growth" else 0
        points = [(at_s, float(value - base)) for at_s, value in zip(series.at_s, series.values, strict=True)]
    if not points:
        return None
    thinned = thin(points, _MOST_POINTS if sampled.representative else _MOST_POINTS_OF_OTHERS)
    return SampledLine(
        configuration=sampled.trial.slot.configuration,
        block=sampled.trial.slot.block,
        end_s=round(sampled.samples.end_s, 6),
        at_s=tuple(round(max(0.0, at_s), 6) for at_s, _ in thinned),
        values=tuple(value for _, value in thinned),
        representative=sampled.representative,
    )


def _rates(series: TimeSeries, interval_s: float) -> Points:
    # Return the growth per second up to each reading; those too close to another one have no rate.
    readings = [(series.at_s[0], series.values[0])]
    for at_s, value in zip(series.at_s, series.values, strict=True):
        if at_s - readings[-1][0] >= interval_s / 2:
            readings.append((at_s, value))
    return [(until, (after - before) / (until - since)) for (since, before), (until, after) in pairwise(readings)]


def _marks(study: ResolvedStudy, where: _Where, trials: Sequence[_SampledTrial]) -> Iterator[TimelineMark]:
    for timeline in study.timelines:
        if timeline.take != "delay" or (timeline.source, timeline.key) != where:
            continue
        for sampled in trials:
            delay_s = sampled.trial.metrics.get(timeline.name)
            if sampled.representative and delay_s is not None:
                since_s = sampled.samples.end_s if timeline.since == "end" else 0.0
                yield TimelineMark(
                    metric=timeline.name,
                    configuration=sampled.trial.slot.configuration,
                    at_s=round(since_s + delay_s, 6),
                )

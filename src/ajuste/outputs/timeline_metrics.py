"""Metrics of timelines, from what samplers read: delays, growth, rates; the mean, the most, the least, the last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Literal

from ajuste.model.base import BaseModel
from ajuste.model.event import Event, Exited, Sample, Sampled, Started
from ajuste.model.plan import SamplerSource
from ajuste.outputs.base import ParseError

Take = Literal["delay", "growth", "rate", "mean", "maximum", "minimum", "last"]

# A counter that falls by more than this part of its range was reset or has wrapped. By less it only seems to go back:
# /proc/vmstat adds up from a part for each CPU only now and then.
_RESET = 0.5


class Timeline(BaseModel):
    """``name`` is the metric that is taken from the figure ``key`` of ``source``. Readings count ``since`` the
    workload's start or end. Of a ``counter`` it is an error to have been reset.
    """

    name: str
    source: SamplerSource
    key: str
    take: Take
    fraction: float = 0.9
    since: Literal["start", "end"] = "start"
    counter: bool = False


@dataclass(frozen=True)
class TimeSeries:
    """A figure over time: ``at_s`` in seconds since the workload's start, never falling; ``values`` as read."""

    at_s: tuple[float, ...]
    values: tuple[int, ...]

    def since(self, at_s: float) -> TimeSeries:
        """Return it from the reading nearest to ``at_s``: there is one of the workload's start and one of its end."""
        first = min(range(len(self.at_s)), key=lambda place: abs(self.at_s[place] - at_s))
        return TimeSeries(self.at_s[first:], self.values[first:])


@dataclass(frozen=True)
class Sampling:
    """The readings of samplers in one trial, by source and figure. ``end_s`` is when the workload ended, in seconds
    since its start. ``missing`` says of a source why there is nothing, ``full`` are those that were not read to the
    end.
    """

    series: Mapping[tuple[SamplerSource, str], TimeSeries]
    end_s: float
    missing: Mapping[SamplerSource, str] = field(default_factory=dict)
    full: frozenset[SamplerSource] = frozenset()


def sampling(events: Iterable[Event]) -> Sampling | None:
    """Return what samplers read beside the workload; ``None`` if it never started or never ended."""
    readings: dict[tuple[SamplerSource, str], list[tuple[int, int]]] = {}
    start_ns = end_s = None
    ends: list[Sampled] = []
    for event in events:
        match event:
            case Started(role="workload"):
                start_ns = event.at_ns
            case Exited(role="workload"):
                end_s = event.wall_ns / 1e9
            case Sampled():
                ends.append(event)
            case Sample():
                for name, value in event.values.items():
                    readings.setdefault((event.source, name), []).append((event.at_ns, value))
    if start_ns is None or end_s is None:
        return None
    start = start_ns
    return Sampling(
        series={
            where: TimeSeries(
                tuple((at_ns - start) / 1e9 for at_ns, _ in readings_there), tuple(value for _, value in readings_there)
            )
            for where, readings_there in readings.items()
        },
        end_s=end_s,
        missing={end.source: end.not_supported for end in ends if end.not_supported},
        full=frozenset(end.source for end in ends if end.full),
    )


def measure(timeline: Timeline, samples: Sampling) -> float:
    """Return the value of ``timeline``: seconds for a delay, else in the figure's unit (a second, for a rate).

    Raises ParseError where there are not enough readings, where a counter was reset, and for the delay of what did not
    change.
    """
    name = f"{timeline.source} {timeline.key}"
    if timeline.source in samples.full:
        raise ParseError(f"the samplers had no more room for all readings; {name} was not read to the end")
    whole = samples.series[(timeline.source, timeline.key)]
    since_s = 0.0 if timeline.since == "start" else samples.end_s
    series = whole.since(since_s)
    if timeline.counter:
        _check_counter(name, series)
    if timeline.take in _OF_CHANGE and len(series.values) < 2:
        raise ParseError(f"{name} was read only once since the workload's {timeline.since}")
    if timeline.take == "delay":
        return _delay(name, series, since_s, timeline.fraction)
    return _TAKES[timeline.take](series)


def _check_counter(name: str, series: TimeSeries) -> None:
    # Raises ParseError where it went back, but for what is the kernel's loose counting.
    span = max(series.values) - min(series.values)
    for at_s, (before, after) in zip(series.at_s[1:], pairwise(series.values), strict=True):
        if before - after > _RESET * span:
            raise ParseError(
                f"the counter {name} went back from {before} to {after}, {at_s:.3f} s after the workload's start: "
                "it was reset or has wrapped"
            )


def _delay(name: str, series: TimeSeries, since_s: float, fraction: float) -> float:
    # Seconds from `since_s` until `fraction` of the whole change had happened, by a straight line between readings.
    base = series.values[0]
    goal = fraction * (series.values[-1] - base)
    if goal == 0:
        raise ParseError(f"{name} is at the end what it was at the beginning: there is no delay of its change")
    sign = 1 if goal > 0 else -1
    done = [sign * (value - base) for value in series.values]
    place = next(place for place, part in enumerate(done) if part >= sign * goal)
    before, after = done[place - 1], done[place]
    part = (sign * goal - before) / (after - before)
    # Counted from the later reading, so that rounding never leads beyond it.
    at_s = series.at_s[place] - (1 - part) * (series.at_s[place] - series.at_s[place - 1])
    return max(0.0, at_s - since_s)


def _growth(series: TimeSeries) -> float:
    return float(series.values[-1] - series.values[0])


def _rate(series: TimeSeries) -> float:
    seconds = series.at_s[-1] - series.at_s[0]
    if seconds <= 0:
        raise ParseError("all readings are of the same moment: there is no rate")
    return _growth(series) / seconds


def _mean(series: TimeSeries) -> float:
    # Weighted by time: readings are not evenly spread at the beginning and the end.
    seconds = series.at_s[-1] - series.at_s[0]
    if seconds <= 0:
        return float(series.values[0])
    pieces = zip(pairwise(series.at_s), pairwise(series.values), strict=True)
    return sum((until - since) * (begin + other) / 2 for (since, until), (begin, other) in pieces) / seconds


_OF_CHANGE = ("delay", "growth", "rate")
_TAKES: Mapping[Take, Callable[[TimeSeries], float]] = MappingProxyType(
    {
        "growth": _growth,
        "rate": _rate,
        "mean": _mean,
        "maximum": lambda series: float(max(series.values)),
        "minimum": lambda series: float(min(series.values)),
        "last": lambda series: float(series.values[-1]),
    }
)


@dataclass(frozen=True)
class MeasuredTimeline:
    """``metrics`` of a trial's timelines; why others are ``not_supported`` here; ``flagged``: why one could not be
    taken from what was read.
    """

    metrics: dict[str, float] = field(default_factory=dict)
    not_supported: dict[str, str] = field(default_factory=dict)
    flagged: list[str] = field(default_factory=list)


def measure_all(timelines: Sequence[Timeline], events: Iterable[Event]) -> MeasuredTimeline:
    """Return all metrics of ``timelines``. Never raises."""
    measured = MeasuredTimeline()
    if not timelines:
        return measured
    samples = sampling(events)
    for timeline in timelines:
        if samples is None:
            measured.flagged.append(f"{timeline.name}: the agent did not say when the workload started")
        elif (timeline.source, timeline.key) not in samples.series:
            here = f"{timeline.source} has no {timeline.key} here"
            measured.not_supported[timeline.name] = samples.missing.get(timeline.source, here)
        else:
            try:
                measured.metrics[timeline.name] = measure(timeline, samples)
            except ParseError as failure:
                measured.flagged.append(f"{timeline.name}: {failure.message}")
    return measured

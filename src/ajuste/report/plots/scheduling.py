"""What the scheduler did under two configurations, side by side: causes, waits, runs, and how many want to run."""

from __future__ import annotations

import itertools
import math
from typing import Any, Final

from ajuste.model.results import Results
from ajuste.model.scheduling import Explanation, Recording, Spread
from ajuste.report.format import number
from ajuste.report.plots.plot import LegendEntry, Mark, Plot, figure, plain
from ajuste.report.plots.trials import configuration_marks

CAUSES: Final = {
    "by_wakeup": "preempted by a wake-up",
    "by_turn": "its time slice expired",
    "slept": "waits",
    "blocked": "waits for a disk",
    "stopped": "stopped",
    "exited": "ended",
}
_TICKS_NS: Final = {
    10.0 ** (power + step): f"{10**step} {unit}"
    for power, unit in ((0, "ns"), (3, "µs"), (6, "ms"), (9, "s"))
    for step in range(3)
}
_ROW: Final = 46
_BAR: Final = 11
"""CSS pixels of a cause, and of a bar."""
_APART: Final = 0.16
"""Parts of a row, of a bar's middle from the row's."""
_HEIGHT: Final = 270
_PER_DOUBLING: Final = 4
"""Classes of a histogram of durations."""

_FEW: Final = 20

Pair = list[tuple[Recording, Mark, str]]


def scheduling_plots(
    results: Results, explanation: Explanation, called: tuple[str, ...], name: str
) -> tuple[Plot, ...]:
    """None where something was not recorded. ``called`` are baseline and configuration."""
    marks = configuration_marks(results)
    both = (explanation.baseline, explanation.own)
    pair = [
        (one.recording, marks[one.configuration], words)
        for one, words in zip(both, called, strict=True)
        if one.recording is not None and one.configuration in marks
    ]
    if len(pair) < len(both):
        return ()
    legend = tuple(
        LegendEntry(words + (" (baseline)" if place == 0 else ""), "square", own.role)
        for place, (_, own, words) in enumerate(pair)
    )
    plots = (
        _causes(pair, f"{name}-causes", legend),
        _durations(pair, "latency", "Time from wake-up to running", "wake-ups", f"{name}-latency", legend),
        _durations(pair, "runs", "Length of a run on the CPU", "runs", f"{name}-runs", legend),
        _queue(pair, f"{name}-queue", legend),
    )
    return tuple(plot for plot in plots if plot is not None)


def _causes(pair: Pair, name: str, legend: tuple[LegendEntry, ...]) -> Plot:
    shown = [cause for cause in CAUSES if any(getattr(one.workload.switches, cause) for one, _, _ in pair)]
    counts = [[getattr(one.workload.switches, cause) for cause in shown] for one, _, _ in pair]
    both = [" → ".join(number(own[place], 0) for own in counts) for place in range(len(shown))]
    said = (f"{CAUSES[cause]} {words}" for cause, words in zip(shown, both, strict=True))
    return Plot(
        name=name,
        title="Why the workload's tasks left the CPU, number of switches",
        description=f"Switches by cause, {' and '.join(words for _, _, words in pair)}: {', '.join(said)}.",
        figure=figure(
            [
                _bars(own, [place + _APART * (2 * side - 1) for place in range(len(shown))], mark, words)
                for side, (own, (_, mark, words)) in enumerate(zip(counts, pair, strict=True))
            ],
            xaxis={"range": [0, 1.05 * max(1, *itertools.chain(*counts))], "nticks": 4},
            yaxis={
                "tickmode": "array",
                "tickvals": list(range(len(shown))),
                "ticktext": [f"{CAUSES[cause]}<br>{words}" for cause, words in zip(shown, both, strict=True)],
                "range": [len(shown) - 0.5, -0.5],
                "showgrid": False,
            },
        ),
        height=60 + _ROW * max(2, len(shown)),
        legend=legend,
    )


def _bars(counts: list[int], places: list[float], own: Mark, words: str) -> dict[str, Any]:
    """Thick lines from 0, one for each count."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [end for count in counts for end in (0, count, None)],
        "y": [end for place in places for end in (place, place, None)],
        "line": {"color": own.colour, "width": _BAR},
        "hoverinfo": "text",
        "hovertext": [f"<b>{plain(words)}</b><br>{number(count, 0)}" for count in counts for _ in range(3)],
    }


def _durations(
    pair: Pair, of: str, title: str, counted: str, name: str, legend: tuple[LegendEntry, ...]
) -> Plot | None:
    """``None`` where there are so few that each could be told."""
    spreads: list[tuple[Spread, Mark, str]] = [(getattr(one.workload, of), own, words) for one, own, words in pair]
    if max(spread.count for spread, _, _ in spreads) < _FEW:
        return None
    floor = min(50 / spread.count for spread, _, _ in spreads if spread.count)  # half of what one is
    traces = [_outline(*_shares(spread, floor), own, words) for spread, own, words in spreads]
    ends = [end for trace in traces for end in (trace["x"][:1] + trace["x"][-1:])]
    ticks = {at: words for at, words in _TICKS_NS.items() if min(ends) / 1.25 <= at <= max(ends) * 1.25}
    said = "; ".join(
        f"{words}: {number(spread.count, 0)} {counted}, median {number(spread.p50_ns / 1000, 1)} µs, p95 "
        f"{number(spread.p95_ns / 1000, 1)} µs, longest {number(spread.max_ns / 1000, 1)} µs"
        for spread, _, words in spreads
    )
    return Plot(
        name=name,
        title=f"{title}, share of the {counted}, logarithmic",
        description=f"{title}. {said}.",
        figure=figure(
            traces,
            xaxis={
                "type": "log",
                "range": [math.log10(min(ends)) - 0.1, math.log10(max(ends)) + 0.1],
                "tickmode": "array",
                "tickvals": list(ticks),
                "ticktext": list(ticks.values()),
            },
            yaxis={"type": "log", "range": [math.log10(floor), 2], "dtick": 1, "ticksuffix": " %"},
        ),
        height=_HEIGHT,
        legend=legend,
    )


def _shares(spread: Spread, floor: float) -> tuple[list[float], list[float]]:
    """Where each class begins, and what share of all is in it: ``floor`` before the first, after the last and in gaps,
    because a logarithmic axis has no 0.
    """
    edges: list[float] = []
    shares: list[float] = []
    end = 0.0
    for least, count in spread.histogram:
        begin = float(max(1, least))
        if begin > end:
            edges.append(end or begin)
            shares.append(floor)
        edges.append(begin)
        shares.append(100 * count / spread.count)
        end = _next_class(begin)
    return [*edges, end or 1.0], [*shares, floor]


def _next_class(begin: float) -> float:
    octave = 2.0 ** math.floor(math.log2(begin))
    return begin + max(1.0, octave / _PER_DOUBLING)


def _queue(pair: Pair, name: str, legend: tuple[LegendEntry, ...]) -> Plot:
    traces = []
    for one, own, words in pair:
        whole = sum(lasted for _, lasted in one.queue) or 1
        by_length = {length: 100 * lasted / whole for length, lasted in one.queue}
        lengths = range(max(by_length, default=0) + 2)
        traces.append(_outline([n - 0.5 for n in lengths], [by_length.get(n, 0.0) for n in lengths], own, words))
    return Plot(
        name=name,
        title="Runnable tasks per CPU, share of the time",
        description="Runnable tasks per CPU, including the running one, of all tasks.",
        figure=figure(
            traces,
            xaxis={"nticks": 8, "title": {"text": "tasks"}},
            yaxis={"ticksuffix": " %", "rangemode": "tozero", "nticks": 5},
        ),
        height=_HEIGHT,
        legend=legend,
    )


def _outline(edges: list[float], shares: list[float], own: Mark, words: str) -> dict[str, Any]:
    """A histogram's upper edge: each share from its edge to the next."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [edges[0], *(edge for edge in edges[1:] for _ in range(2))] if edges else [],
        "y": [share for share in shares for _ in range(2)][:-1],
        "line": {"width": 2, "color": own.colour},
        "hoverinfo": "y+text",
        "hovertext": f"<b>{plain(words)}</b>",
    }

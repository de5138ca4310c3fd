"""Plots of a search: the importance of each factor, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.search import Phase
from ajuste.model.verdict import Verdict
from ajuste.model.wording import change
from ajuste.report.format import Labels
from ajuste.report.plots.plot import (
    LegendEntry,
    Plot,
    error_bars,
    figure,
    heat_scale,
    level_axis,
    line_at,
    plain,
    scatter,
    variable,
)
from ajuste_search.tuning.model import ExpectedMap, SearchStep, Tuning
from ajuste_stats.terms import Scale


def importance_plot(tuning: Tuning, metric: Metric) -> Plot | None:
    """Return each factor's share of the variation; ``None`` if it is not known."""
    if not tuning.importance:
        return None
    importances = list(reversed(tuning.importance))
    trace = {
        "type": "bar",
        "orientation": "h",
        "x": [100 * importance.share for importance in importances],
        "y": list(range(len(importances))),
        "width": 0.5,
        "marker": {"color": variable("series-1")},
        "error_x": error_bars(
            [100 * (importance.high - importance.share) for importance in importances],
            [100 * (importance.share - importance.low) for importance in importances],
            variable("ink"),
            thickness=1.5,
        ),
        "hoverinfo": "text",
        "hovertext": [
            f"<b>{plain(i.factor)}</b><br>{100 * i.share:.0f} % ({100 * i.low:.0f} to {100 * i.high:.0f} %)"
            for i in importances
        ],
    }
    return Plot(
        name="search-importance",
        title="Importance of each setting, in % of the variation",
        description=f"{metric.title}: for each setting the share of the model's variation that goes away if it is held "
        "fixed, with 95 % intervals.",
        figure=figure(
            [trace],
            xaxis={"range": [0, 105], "title": {"text": "share of the variation"}},
            yaxis=level_axis([importance.factor for importance in importances], width=32),
        ),
        height=90 + 46 * len(importances),
        wide=True,
    )


# Two objectives of a search: what was tried, and the front that was checked, with intervals.


def front_plot(results: Results, tuning: Tuning, metrics: tuple[Metric, ...]) -> Plot | None:
    """Return changes against the baseline on the first two objectives; ``None`` with only one."""
    if len(metrics) < 2 or not tuning.steps:
        return None
    ratios = [scale == "ratio" for scale in tuning.scales]
    traces: list[dict[str, Any]] = [
        scatter(
            "markers",
            [drawn_value(step.changes[0], ratios[0]) for step in tuning.steps],
            [drawn_value(step.changes[1], ratios[1]) for step in tuning.steps],
            [f"{plain(step.configuration)}, block {step.block}" for step in tuning.steps],
            marker={"symbol": "circle-open", "size": 7, "color": variable("muted")},
        )
    ]
    checked = [verdicts for name in tuning.chosen if (verdicts := _checked(results, name, metrics, tuning.scales))]
    if checked:
        traces.append(_marks(checked, ratios, metrics))
    units = ["%" if ratio else metric.unit for ratio, metric in zip(ratios, metrics, strict=False)]
    titles = [f"{m.title}{f', in {unit}' if unit else ''}" for m, unit in zip(metrics, units, strict=False)]
    return Plot(
        name="search-front",
        title="The choice between two objectives: changes from the baseline",
        description=f"{metrics[0].title} against {metrics[1].title} of every trial, and of what was checked with "
        "intervals.",
        figure=figure(traces, xaxis={"title": {"text": plain(titles[0])}}, yaxis={"title": {"text": plain(titles[1])}}),
        height=360,
        legend=(
            LegendEntry("single trials", "circle", "muted"),
            LegendEntry("checked, with intervals", "diamond", "improves"),
        ),
        wide=True,
    )


def _checked(
    results: Results, configuration: str, metrics: tuple[Metric, ...], scales: tuple[Scale, ...]
) -> tuple[Verdict, Verdict] | None:
    verdicts = {verdict.metric: verdict for verdict in results.verdicts if verdict.configuration == configuration}
    pair = [verdicts.get(metric.name) for metric in metrics[:2]]
    first, second = pair
    if first is None or second is None or (first.scale, second.scale) != scales[:2]:
        return None
    return (first, second) if first.estimate is not None and second.estimate is not None else None


def _marks(checked: list[tuple[Verdict, Verdict]], ratios: list[bool], metrics: tuple[Metric, ...]) -> dict[str, Any]:
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "marker": {"symbol": "diamond", "size": 11, "color": variable("improves")},
        "hoverinfo": "text",
        "hovertext": [
            f"<b>{plain(first.configuration)}</b><br>{plain(change(first.estimate, first.scale, metrics[0].unit))}, "
            f"{plain(change(second.estimate, second.scale, metrics[1].unit))}"
            for first, second in checked
        ],
    }
    for axis, place in (("x", 0), ("y", 1)):
        verdicts = [pair[place] for pair in checked]
        middles = [drawn_value(verdict.estimate or 0.0, ratios[place]) for verdict in verdicts]
        highs = [_far(verdict.high, middle, ratios[place]) for verdict, middle in zip(verdicts, middles, strict=True)]
        lows = [-_far(verdict.low, middle, ratios[place]) for verdict, middle in zip(verdicts, middles, strict=True)]
        trace[axis] = middles
        trace[f"error_{axis}"] = error_bars(highs, lows, variable("improves"), thickness=1.5)
    return trace


def _far(bound: float | None, middle: float, ratio: bool) -> float:
    # From the estimate to a bound; nothing where it is not known.
    return 0.0 if bound is None else drawn_value(bound, ratio) - middle


# The trials of a search in the order in which they were made, and the best so far.


LOOKS: Final[dict[Phase, tuple[str, str, str]]] = {
    "explore": ("explored", "circle", "series-0"),
    "replicate": ("replicated", "square", "series-1"),
    "check": ("checked in fresh blocks", "diamond", "series-2"),
}
"""The name and mark of the trials of each phase."""


def search_history_plot(tuning: Tuning, metric: Metric) -> Plot | None:
    """Return changes of the first objective against the block's baseline; ``None`` without any trial."""
    if not tuning.steps:
        return None
    ratio = tuning.scales[0] == "ratio"
    places = {phase: [n for n, step in enumerate(tuning.steps) if step.phase == phase] for phase in LOOKS}
    traces = [_best(tuning, metric, ratio)]
    traces += [_search_history_marks(tuning, metric, phase, places[phase], ratio) for phase in LOOKS if places[phase]]
    unit = "%" if ratio else metric.unit
    return Plot(
        name="search-history",
        title=f"{metric.title}, change from the baseline, trial by trial{f', in {unit}' if unit else ''}",
        description=f"{metric.title} of every trial against the baseline of its block, and the best so far.",
        figure=figure(
            traces,
            xaxis={"title": {"text": "trial beside the baseline"}},
            shapes=[line_at(y=0)],
        ),
        height=300,
        legend=(
            *(LegendEntry(text, symbol, role) for phase, (text, symbol, role) in LOOKS.items() if places[phase]),
            LegendEntry("best single trial so far", "line", "muted"),
        ),
        wide=True,
    )


def drawn_value(value: float, ratio: bool) -> float:
    """Return a ratio in percent of change, or the difference itself."""
    return 100 * (value - 1) if ratio else value


def _search_history_marks(
    tuning: Tuning, metric: Metric, phase: Phase, places: list[int], ratio: bool
) -> dict[str, Any]:
    _, symbol, role = LOOKS[phase]
    steps = [tuning.steps[place] for place in places]
    return scatter(
        "markers",
        [place + 1 for place in places],
        [drawn_value(step.changes[0], ratio) for step in steps],
        [_hover(tuning, step, metric) for step in steps],
        marker={
            "symbol": [symbol if step.allowed else f"{symbol}-open" for step in steps],
            "size": 7,
            "color": variable(role),
        },
    )


def _hover(tuning: Tuning, step: SearchStep, metric: Metric) -> str:
    effect = change(step.changes[0], tuning.scales[0], metric.unit)
    breaks = "" if step.allowed else "<br>breaks a constraint"
    return f"<b>{plain(step.configuration)}</b><br>block {step.block}: {plain(effect)}{breaks}"


def _best(tuning: Tuning, metric: Metric, ratio: bool) -> dict[str, Any]:
    better = max if metric.direction == "higher" else min
    best: list[float | None] = []
    for step in tuning.steps:
        known = best[-1] if best else None
        if step.allowed and step.phase != "check":
            known = step.changes[0] if known is None else better(known, step.changes[0])
        best.append(known)
    return scatter(
        "lines",
        list(range(1, len(best) + 1)),
        [None if value is None else drawn_value(value, ratio) for value in best],
        line={"color": variable("muted"), "width": 1.5, "shape": "hv"},
    )


# Where a search has looked: what its model expects over two factors, and the points that were tried.


_MOST_TICKS: Final = 10


class Marker(NamedTuple):
    """``fill`` and ``edge`` are roles of the palette."""

    symbol: str
    size: int
    fill: str
    edge: str


_TRIED: Final = Marker("circle", 8, "card", "ink")
_CHOSEN: Final = Marker("diamond", 13, "series-2", "card")


def search_map(results: Results, tuning: Tuning, metric: Metric, labels: Labels) -> Plot | None:
    """Return the model's expectation over two factors; ``None`` where no two have an order.

    A point with other levels of further factors lies where its two levels are.
    """
    expected = tuning.expected
    if expected is None:
        return None
    ratio = tuning.scales[0] == "ratio"
    traces: list[dict[str, Any]] = [
        {
            "type": "heatmap",
            "z": [[drawn_value(value, ratio) for value in line] for line in expected.expected],
            "hoverinfo": "text",
            "hovertext": _hovers(expected, tuning, metric, labels),
            "colorscale": heat_scale(strong_below=metric.direction != "higher"),
            "showscale": False,
        },
        _markers(_places(results, expected, {step.configuration for step in tuning.steps}), _TRIED, "{}"),
        _markers(_places(results, expected, set(tuning.chosen)), _CHOSEN, "<b>{}</b>"),
    ]
    return Plot(
        name="search-map",
        title="Prediction of the model over two settings, with the tried ones; stronger is better",
        description=f"{metric.title} as a model expects it over {expected.down} (upwards) and {expected.across}, with "
        "what was tried and the choice.",
        figure=figure(
            traces,
            xaxis=_axis(expected.across, expected.across_levels, labels),
            yaxis=_axis(expected.down, expected.down_levels, labels),
        ),
        height=max(320, 60 + 20 * len(expected.down_levels)),
        legend=(LegendEntry("tried", "circle", "ink"), LegendEntry("checked", "diamond", "series-2")),
        wide=True,
    )


def _axis(factor: str, levels: tuple[str, ...], labels: Labels) -> dict[str, Any]:
    axis = level_axis([labels.level(factor, level) for level in levels], width=10)
    step = -(-len(levels) // _MOST_TICKS)
    return {
        **axis,
        "tickvals": axis["tickvals"][::step],
        "ticktext": axis["ticktext"][::step],
        "range": [-0.5, len(levels) - 0.5],
        "title": {"text": plain(factor)},
        "showgrid": False,
    }


def _hovers(expected: ExpectedMap, tuning: Tuning, metric: Metric, labels: Labels) -> list[list[str]]:
    return [
        [
            f"{plain(labels.level(expected.down, down))}, {plain(labels.level(expected.across, across))}<br>"
            f"expected: {plain(change(value, tuning.scales[0], metric.unit))}"
            for across, value in zip(expected.across_levels, line, strict=True)
        ]
        for down, line in zip(expected.down_levels, expected.expected, strict=True)
    ]


def _places(results: Results, expected: ExpectedMap, names: set[str]) -> list[tuple[int, int, str]]:
    # Column and row of those of `names` whose levels are on the map.
    places = []
    for configuration in results.configurations:
        down, across = configuration.levels.get(expected.down), configuration.levels.get(expected.across)
        if configuration.name in names and down in expected.down_levels and across in expected.across_levels:
            place = (expected.across_levels.index(across), expected.down_levels.index(down))
            places.append((*place, configuration.name))
    return places


def _markers(places: Sequence[tuple[int, int, str]], marker: Marker, name: str) -> dict[str, Any]:
    # `name` has a place for the configuration's.
    return scatter(
        "markers",
        [place[0] for place in places],
        [place[1] for place in places],
        [name.format(plain(place[2])) for place in places],
        marker={
            "symbol": marker.symbol,
            "size": marker.size,
            "color": variable(marker.fill),
            "line": {"width": 1.5, "color": variable(marker.edge)},
        },
    )

"""Every trial of one metric: by block while the configurations can be told apart by marks, else in a row for each."""

from __future__ import annotations

from typing import Any, Final

from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Point, Results
from ajuste.report.format import Shown
from ajuste.report.labels import Labels
from ajuste.report.palette import SERIES, variable
from ajuste.report.plots.plot import LegendEntry, Mark, Plot, figure, level_axis, mark
from ajuste.report.plots.trial_marks import (
    KINDS,
    axis_type,
    exact,
    figure_axis,
    hover_text,
    kind_legend,
    kind_of,
    place_word,
    symbol_of,
)

MOST_MARKED: Final = SERIES
ROW_HEIGHT: Final = 26
_HEIGHT: Final = 340
_NO_FIGURE: Final = {"range": [-1, 1], "tickvals": [0], "ticktext": ["no figure"], "fixedrange": True}


def trials_plot(results: Results, metric: Metric, labels: Labels, name: str) -> Plot:
    """A mark for every trial, also for those that have no figure: they stand on a line of their own."""
    values = [t.metrics[metric.name] for t in results.trials if metric.name in t.metrics]
    shown = exact(metric, values)
    by_block = len(results.configurations) <= MOST_MARKED
    draw = _by_block if by_block else _by_configuration
    made = draw(results, metric, labels, shown)
    unit = f", in\u00a0{shown.unit}" if shown.unit else ""
    scale = ", logarithmic" if by_block and axis_type(values) == "log" else ""
    return Plot(
        name=name,
        title=f"Every {'value' if results.elsewhere else 'trial'}{unit}{scale}",
        description=f"{metric.title}: {len(results.trials)} trials of {len(results.configurations)} configurations, "
        + (
            f"by {place_word(results)}."
            if by_block
            else f"a row for each configuration, within it by {place_word(results)} from top to bottom."
        ),
        figure=made,
        height=_HEIGHT if by_block else 70 + ROW_HEIGHT * len(results.configurations),
        legend=(_configuration_legend(results, labels) if by_block else ()) + kind_legend(results.trials),
    )


def configuration_marks(results: Results) -> dict[str, Mark]:
    """A mark for every configuration; the baseline's is in the colour of text."""
    others = (c.name for c in results.configurations if not c.baseline)
    marks = {name: mark(1 + place % (SERIES - 1)) for place, name in enumerate(others)}
    return {c.name: marks.get(c.name, mark(0)) for c in results.configurations}


def _by_block(results: Results, metric: Metric, labels: Labels, shown: Shown) -> Any:
    marks = configuration_marks(results)
    traces: list[dict[str, Any]] = []
    count = len(results.configurations)
    for place, configuration in enumerate(results.configurations):
        offset = (place - (count - 1) / 2) * min(0.16, 0.7 / count)
        for trials in _groups(results, configuration, metric):
            measured = metric.name in trials[0].metrics
            trace = _trace(
                trials, marks[configuration.name], labels.short(configuration), metric, shown, place_word(results)
            )
            trace["x"] = [trial.block + offset for trial in trials]
            trace["y"] = [shown.scaled(trial.metrics[metric.name]) if measured else 0 for trial in trials]
            if not measured:
                trace["yaxis"] = "y2"
            elif kind_of(trials[0]) == "clean":
                trace["mode"] = "lines+markers"
                trace["line"] = {"width": 1, "color": marks[configuration.name].colour}
            traces.append(trace)
    values = [t.metrics[metric.name] for t in results.trials if metric.name in t.metrics]
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": place_word(results)}, "rangemode": "tozero", **_block_ticks(results)},
        "yaxis": {**figure_axis([shown.scaled(v) for v in values]), "domain": [0, 1]},
    }
    if any("yaxis" in trace for trace in traces):
        layout["yaxis"]["domain"] = [0.16, 1]
        layout["yaxis2"] = {"domain": [0, 0.1], "anchor": "x", **_NO_FIGURE}
        layout["xaxis"]["anchor"] = "y2"
    return figure(traces, **layout)


def _by_configuration(results: Results, metric: Metric, labels: Labels, shown: Shown) -> Any:
    blocks = sorted({trial.block for trial in results.trials})
    height = {block: 0.3 * (1 - 2 * place / max(1, len(blocks) - 1)) for place, block in enumerate(blocks)}
    count = len(results.configurations)
    values = [t.metrics[metric.name] for t in results.trials if metric.name in t.metrics]
    traces = []
    for place, configuration in enumerate(results.configurations):
        role = "series-0" if configuration.baseline else "series-1"
        for trials in _groups(results, configuration, metric):
            trace = _trace(
                trials, Mark(role, "circle"), labels.short(configuration), metric, shown, place_word(results)
            )
            trace["marker"]["size"] = 6
            measured = metric.name in trials[0].metrics
            trace["x"] = [shown.scaled(t.metrics[metric.name]) if measured else 0 for t in trials]
            if not measured:
                trace["xaxis"] = "x2"
            trace["y"] = [count - 1 - place + height[trial.block] for trial in trials]
            traces.append(trace)
    rows = [_row_label(configuration, labels) for configuration in reversed(results.configurations)]
    layout: dict[str, Any] = {
        "xaxis": figure_axis([shown.scaled(v) for v in values]),
        "yaxis": level_axis(rows, width=24),
    }
    if any("xaxis" in trace for trace in traces):
        layout["xaxis"]["domain"] = [0.16, 1]
        layout["xaxis2"] = {"domain": [0, 0.1], "anchor": "y", **_NO_FIGURE}
        layout["yaxis"]["anchor"] = "x2"
    return figure(traces, **layout)


def _groups(results: Results, configuration: Measured, metric: Metric) -> list[list[Point]]:
    """The trials of a configuration by kind and by whether they have a figure, each in order of blocks."""
    mine = sorted(
        (trial for trial in results.trials if trial.configuration == configuration.name),
        key=lambda trial: (trial.block, trial.attempt),
    )
    groups = [
        [trial for trial in mine if kind_of(trial) == kind and (metric.name in trial.metrics) == measured]
        for kind in KINDS
        for measured in (True, False)
    ]
    return [group for group in groups if group]


def _trace(trials: list[Point], own: Mark, label: str, metric: Metric, shown: Shown, place: str) -> dict[str, Any]:
    kind = kind_of(trials[0])
    symbol = symbol_of(kind, own.symbol)
    open_symbol = symbol.endswith("-open")
    return {
        "type": "scatter",
        "mode": "markers",
        "marker": {
            "symbol": symbol,
            "color": own.colour,
            "size": 9 if open_symbol else 8,
            "line": {"width": 1.6 if open_symbol else 0.8, "color": own.colour if open_symbol else variable("card")},
        },
        "hoverinfo": "text",
        "hovertext": [hover_text(trial, label, metric, shown, place) for trial in trials],
    }


def _configuration_legend(results: Results, labels: Labels) -> tuple[LegendEntry, ...]:
    marks = configuration_marks(results)
    return tuple(
        LegendEntry(labels.short(c) + (" (baseline)" if c.baseline else ""), marks[c.name].symbol, marks[c.name].role)
        for c in results.configurations
    )


def _row_label(configuration: Measured, labels: Labels) -> str:
    return labels.short(configuration) + (" (baseline)" if configuration.baseline else "")


def _block_ticks(results: Results) -> dict[str, Any]:
    last = max((trial.block for trial in results.trials), default=0)
    return {"range": [-0.6, last + 0.6], "dtick": max(1, -(-(last + 1) // 12)), "tick0": 0}

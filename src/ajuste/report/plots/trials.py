"""Single trials: clean ones marked as their configuration, others by what became of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from ajuste.model.diagnostic import DIAGNOSTICS
from ajuste.model.metric import Metric
from ajuste.model.origin import ELSEWHERE
from ajuste.model.results import Measured, Point, Results
from ajuste.model.wording import visible_line
from ajuste.report.format import Labels, NumberFormat, common_format, in_unit
from ajuste.report.plots.plot import (
    SERIES,
    LegendEntry,
    Mark,
    Plot,
    figure,
    level_axis,
    line_at,
    mark,
    plain,
    plain_lines,
    scatter,
    variable,
)

Kind = Literal["clean", "warm-up", "flagged", "failed"]

KINDS: Final[tuple[Kind, ...]] = ("clean", "warm-up", "flagged", "failed")
_LEGEND: Final[dict[Kind, tuple[str, str]]] = {
    "warm-up": ("warm-up, left out", "circle-open"),
    "flagged": ("flagged, left out and repeated", "diamond-cross-open"),
    "failed": ("failed, not measured", "x-thin-open"),
}
_LOG_SPAN: Final = 30.0  # figures that span more than this are drawn on a logarithmic axis

MOST_MARKED: Final = SERIES
ROW_HEIGHT: Final = 26
_HEIGHT: Final = 340
_NO_FIGURE: Final = {"range": [-1, 1], "tickvals": [0], "ticktext": ["no figure"], "fixedrange": True}
_JITTER: Final = 0.28


def trial_kind(trial: Point) -> Kind:
    """Return how a trial is drawn."""
    if trial.status == "failed":
        return "failed"
    if trial.status != "ok":
        return "flagged"
    return "warm-up" if trial.warm_up else "clean"


def clean_trials(results: Results, metric: Metric) -> list[Point]:
    """Return the trials that count and have a value of ``metric``."""
    return [trial for trial in results.trials if trial_kind(trial) == "clean" and metric.name in trial.metrics]


def trial_symbol(kind: Kind, symbol: str) -> str:
    """Return the symbol of a trial whose configuration has ``symbol``."""
    return symbol if kind == "clean" else f"{symbol}-open" if kind == "warm-up" else _LEGEND[kind][1]


def kind_legend(trials: Iterable[Point]) -> tuple[LegendEntry, ...]:
    """Return entries for the kinds other than clean that occur."""
    present = {trial_kind(trial) for trial in trials}
    return tuple(LegendEntry(*_LEGEND[kind], "muted") for kind in KINDS if kind != "clean" and kind in present)


def place_word(results: Results) -> str:
    """Return what a trial's ``block`` counts: blocks, or values of a file measured elsewhere without any."""
    return "place in the file" if ELSEWHERE.of(results) is not None and not results.blocks else "block"


def hover_text(trial: Point, label: str, metric: Metric, fmt: NumberFormat, place: str = "block") -> str:
    """Return configuration, block (``place``), seed, figure, and what was wrong with a trial."""
    value = trial.metrics.get(metric.name)
    lines = [
        f"<b>{plain_lines(label, 40)}</b>",
        f"{place} {trial.block}"
        + (f", place {trial.position}, seed {trial.seed}" if trial.seed is not None else "")
        + (f", attempt {trial.attempt}" if trial.attempt else ""),
        f"{plain(metric.title)}: {plain(fmt.with_unit(value)) if value is not None else 'no figure'}",
    ]
    if trial.warm_up:
        lines.append("warm-up: left out of every figure")
    if trial.status != "ok" or trial.reason:
        lines.append(plain_lines(f"{visible_line(trial.status)}: {trial.reason}", 44))
    return "<br>".join(lines)


def exact(metric: Metric, values: Iterable[float]) -> NumberFormat:
    """Return the format for an axis and for single figures, which show more digits than means do."""
    fmt = common_format(values, metric.unit)
    return NumberFormat(fmt.unit, fmt.divisor, fmt.decimals if fmt.decimals == 0 else min(9, fmt.decimals + 2))


def axis_type(values: Iterable[float]) -> Literal["log", "linear"]:
    """Return ``log`` where all figures are positive and span more than a decade and a half."""
    figures = list(values)
    spans = bool(figures) and min(figures) > 0 and max(figures) / min(figures) > _LOG_SPAN
    return "log" if spans else "linear"


def figure_axis(values: Sequence[float]) -> dict[str, Any]:
    """Return an axis for figures, logarithmic where ``axis_type`` says so, with room around equal ones."""
    if axis_type(values) == "log":
        powers = math.log10(max(values) / min(values))
        return {"type": "log", "dtick": 1 if powers > 1.9 else "D2", "minor": {"ticks": "outside", "ticklen": 2}}
    if values and min(values) == max(values):
        return {"range": [values[0] - (abs(values[0]) / 10 or 1), values[0] + (abs(values[0]) / 10 or 1)]}
    return {}


# Every trial of one metric: by block while marks distinguish the configurations, else in a row for each.


def trials_plot(results: Results, metric: Metric, labels: Labels, name: str) -> Plot:
    """Return a mark for every trial; those without a figure stand on a line of their own."""
    values = [t.metrics[metric.name] for t in results.trials if metric.name in t.metrics]
    fmt = exact(metric, values)
    by_block = len(results.configurations) <= MOST_MARKED
    draw = _by_block if by_block else _by_configuration
    made = draw(results, metric, labels, fmt)
    scale = ", logarithmic" if by_block and axis_type(values) == "log" else ""
    return Plot(
        name=name,
        title=f"Every {'value' if ELSEWHERE.of(results) else 'trial'}{in_unit(fmt.unit)}{scale}",
        description=f"{metric.title}: {len(results.trials)} trials of {len(results.configurations)} configurations, "
        + (
            f"by {place_word(results)}."
            if by_block
            else f"a row for each configuration, within it by {place_word(results)} from top to bottom."
        ),
        figure=made,
        height=_HEIGHT if by_block else 70 + ROW_HEIGHT * len(results.configurations),
        legend=(configuration_legend(results, labels) if by_block else ()) + kind_legend(results.trials),
    )


def configuration_marks(results: Results) -> dict[str, Mark]:
    """Return a mark for every configuration; the baseline's is in the colour of text."""
    others = (c.name for c in results.configurations if not c.baseline)
    marks = {name: mark(1 + place % (SERIES - 1)) for place, name in enumerate(others)}
    return {c.name: marks.get(c.name, mark(0)) for c in results.configurations}


def configuration_legend(results: Results, labels: Labels, symbol: str = "") -> tuple[LegendEntry, ...]:
    """Return an entry for every configuration; ``symbol`` where it is not that of its mark."""
    marks = configuration_marks(results)
    return tuple(
        LegendEntry(
            labels.named(configuration), symbol or marks[configuration.name].symbol, marks[configuration.name].role
        )
        for configuration in results.configurations
    )


def _by_block(results: Results, metric: Metric, labels: Labels, fmt: NumberFormat) -> Any:
    marks = configuration_marks(results)
    traces: list[dict[str, Any]] = []
    count = len(results.configurations)
    for place, configuration in enumerate(results.configurations):
        offset = (place - (count - 1) / 2) * min(0.16, 0.7 / count)
        for trials in _groups(results, configuration, metric):
            measured = metric.name in trials[0].metrics
            trace = _trace(
                trials, marks[configuration.name], labels.short(configuration), metric, fmt, place_word(results)
            )
            trace["x"] = [trial.block + offset for trial in trials]
            trace["y"] = [fmt.scaled(trial.metrics[metric.name]) if measured else 0 for trial in trials]
            if not measured:
                trace["yaxis"] = "y2"
            elif trial_kind(trials[0]) == "clean":
                trace["mode"] = "lines+markers"
                trace["line"] = {"width": 1, "color": marks[configuration.name].colour}
            traces.append(trace)
    values = [t.metrics[metric.name] for t in results.trials if metric.name in t.metrics]
    last = max((trial.block for trial in results.trials), default=0)
    layout: dict[str, Any] = {
        "xaxis": {
            "title": {"text": place_word(results)},
            "rangemode": "tozero",
            "range": [-0.6, last + 0.6],
            "dtick": max(1, -(-(last + 1) // 12)),
            "tick0": 0,
        },
        "yaxis": {**figure_axis([fmt.scaled(v) for v in values]), "domain": [0, 1]},
    }
    if any("yaxis" in trace for trace in traces):
        layout["yaxis"]["domain"] = [0.16, 1]
        layout["yaxis2"] = {"domain": [0, 0.1], "anchor": "x", **_NO_FIGURE}
        layout["xaxis"]["anchor"] = "y2"
    return figure(traces, **layout)


def _by_configuration(results: Results, metric: Metric, labels: Labels, fmt: NumberFormat) -> Any:
    blocks = sorted({trial.block for trial in results.trials})
    height = {block: 0.3 * (1 - 2 * place / max(1, len(blocks) - 1)) for place, block in enumerate(blocks)}
    count = len(results.configurations)
    values = [t.metrics[metric.name] for t in results.trials if metric.name in t.metrics]
    traces = []
    for place, configuration in enumerate(results.configurations):
        role = "series-0" if configuration.baseline else "series-1"
        for trials in _groups(results, configuration, metric):
            trace = _trace(trials, Mark(role, "circle"), labels.short(configuration), metric, fmt, place_word(results))
            trace["marker"]["size"] = 6
            measured = metric.name in trials[0].metrics
            trace["x"] = [fmt.scaled(t.metrics[metric.name]) if measured else 0 for t in trials]
            if not measured:
                trace["xaxis"] = "x2"
            trace["y"] = [count - 1 - place + height[trial.block] for trial in trials]
            traces.append(trace)
    rows = [labels.named(configuration) for configuration in reversed(results.configurations)]
    layout: dict[str, Any] = {
        "xaxis": figure_axis([fmt.scaled(v) for v in values]),
        "yaxis": level_axis(rows, width=24),
    }
    if any("xaxis" in trace for trace in traces):
        layout["xaxis"]["domain"] = [0.16, 1]
        layout["xaxis2"] = {"domain": [0, 0.1], "anchor": "y", **_NO_FIGURE}
        layout["yaxis"]["anchor"] = "x2"
    return figure(traces, **layout)


def _groups(results: Results, configuration: Measured, metric: Metric) -> list[list[Point]]:
    # The trials of a configuration by kind and by whether they have a figure, each in order of blocks.
    mine = sorted(
        (trial for trial in results.trials if trial.configuration == configuration.name),
        key=lambda trial: (trial.block, trial.attempt),
    )
    groups = [
        [trial for trial in mine if trial_kind(trial) == kind and (metric.name in trial.metrics) == measured]
        for kind in KINDS
        for measured in (True, False)
    ]
    return [group for group in groups if group]


def _trace(
    trials: list[Point], series: Mark, label: str, metric: Metric, fmt: NumberFormat, place: str
) -> dict[str, Any]:
    kind = trial_kind(trials[0])
    symbol = trial_symbol(kind, series.symbol)
    open_symbol = symbol.endswith("-open")
    return {
        "type": "scatter",
        "mode": "markers",
        "marker": {
            "symbol": symbol,
            "color": series.colour,
            "size": 9 if open_symbol else 8,
            "line": {"width": 1.6 if open_symbol else 0.8, "color": series.colour if open_symbol else variable("card")},
        },
        "hoverinfo": "text",
        "hovertext": [hover_text(trial, label, metric, fmt, place) for trial in trials],
    }


# How the level of a metric moved over the run, block by block.


def course_plot(results: Results, metric: Metric, name: str) -> Plot | None:
    """Return the mean of every block against that of all; ``None`` where nothing is known of it."""
    diagnostics = DIAGNOSTICS.of(results)
    courses = diagnostics.courses if diagnostics is not None else ()
    course = next((candidate for candidate in courses if candidate.metric == metric.name), None)
    if course is None:
        return None
    ratio = course.scale == "ratio"
    fmt = exact(metric, course.values)
    values = [100 * (value - 1) if ratio else fmt.scaled(value) for value in course.values]
    unit = "%" if ratio else fmt.unit
    trace = scatter(
        "lines+markers",
        list(course.blocks),
        values,
        [
            f"block {block}<br>{plain(f'{value:+.3g} {unit}'.rstrip())} from the mean"
            for block, value in zip(course.blocks, values, strict=True)
        ],
        line={"width": 1, "color": variable("series-1")},
        marker={"size": 5, "color": variable("series-1")},
    )
    return Plot(
        name=name,
        title=f"Level over the run: mean of each block against all{in_unit(unit)}",
        description=f"{metric.title}: how far the mean of each block is from the mean of all, by block.",
        figure=figure(
            [trace],
            xaxis={"title": {"text": "block"}},
            shapes=[line_at(y=0)],
        ),
        height=220,
        wide=True,
    )


# A small plot of a metric that is only described: every trial, configuration beside configuration.


def small_plot(results: Results, metric: Metric, labels: Labels, name: str) -> Plot | None:
    """Return clean trials in order of blocks, and a bar at their mean; ``None`` if there are none."""
    clean = clean_trials(results, metric)
    if not clean:
        return None
    fmt = exact(metric, [t.metrics[metric.name] for t in clean])
    counted = plain(fmt.unit)
    marks = configuration_marks(results)
    last = max(1, *(t.block for t in clean))
    word = place_word(results)
    few = len(results.configurations) <= MOST_MARKED
    traces: list[dict[str, Any]] = []
    for place, configuration in enumerate(results.configurations):
        mine = [t for t in clean if t.configuration == configuration.name]
        role = marks[configuration.name].colour if few else variable("series-1")
        called = f"<b>{plain_lines(labels.short(configuration), 40)}</b><br>{word}"
        traces.append(
            scatter(
                "markers",
                [round(place + _JITTER * (2 * t.block / last - 1), 4) for t in mine],
                [fmt.scaled(t.metrics[metric.name]) for t in mine],
                [f"{called} {t.block}: {fmt.text(t.metrics[metric.name])} {counted}".rstrip() for t in mine],
                marker={"symbol": marks[configuration.name].symbol if few else "circle", "size": 6, "color": role},
            )
        )
        if summary := configuration.metrics.get(metric.name):
            mean, look = fmt.scaled(summary.mean), {"color": variable("muted"), "width": 2}
            traces.append(scatter("lines", [place - 0.36, place + 0.36], [mean, mean], line=look))
    ticks = [labels.short(configuration) for configuration in results.configurations]
    axis = level_axis(ticks, width=12)
    if not few:
        axis |= {"showticklabels": False, "ticks": "", "title": {"text": "configurations in their order"}}
    unit = f", {fmt.unit}" if fmt.unit else ""
    scale = axis_type(t.metrics[metric.name] for t in clean)
    return Plot(
        name=name,
        title=f"{metric.title}{unit}{', logarithmic' if scale == 'log' else ''}",
        description=f"{metric.title}: {len(clean)} clean trials of {len(results.configurations)} configurations.",
        figure=figure(
            traces,
            xaxis={**axis, "showgrid": False},
            yaxis={"nticks": 5, **figure_axis([fmt.scaled(t.metrics[metric.name]) for t in clean])},
            margin={"t": 6, "b": 8},
        ),
        height=210,
    )

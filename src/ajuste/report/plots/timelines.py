"""Plots of the readings of samplers, figure below figure, on one axis of seconds since the workload's start."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final

from ajuste.model.results import Results
from ajuste.model.timeline import TIMELINES, SampledFigure, SampledLine
from ajuste.report.format import Labels, NumberFormat, common_format
from ajuste.report.plots.plot import LegendEntry, Mark, Plot, figure, plain, scatter, variable
from ajuste.report.plots.trials import configuration_marks

# CSS pixels of a figure, and between two, where the title of the lower one is.
_ROW: Final = 150
_GAP: Final = 46
_FRAME: Final = 84
_WORDS: Final = {"growth": "growth since the workload's start", "rate": "rate", "value": ""}


def timelines_plot(results: Results, labels: Labels) -> Plot | None:
    """Return all figures aligned; ``None`` if nothing was sampled.

    A bold line for the trial in the middle of each configuration, thin ones for others; the band is the workload's
    time, a diamond a delay.
    """
    figures = TIMELINES.of(results)
    if not figures:
        return None
    rows = len(figures)
    inner = rows * _ROW + (rows - 1) * _GAP
    marks = configuration_marks(results)
    short = labels.by_name(results)
    seen = dict.fromkeys(line.configuration for sampled in figures for line in sampled.lines)
    layout: dict[str, Any] = {"margin": {"t": 40, "b": 36}, "shapes": [], "annotations": []}
    traces: list[dict[str, Any]] = []
    for row, sampled in enumerate(figures):
        top = 1 - row * (_ROW + _GAP) / inner
        axis = "y" if row == 0 else f"y{row + 1}"
        fmt = common_format((value for line in sampled.lines for value in line.values), sampled.unit)
        traces += _traces(sampled, axis, marks, short, fmt, results)
        layout["yaxis" if row == 0 else f"yaxis{row + 1}"] = {
            "domain": [max(0.0, top - _ROW / inner), top],
            "anchor": "x",
            "nticks": 5,
            "rangemode": "tozero",
        }
        layout["shapes"] += _band(sampled, axis)
        layout["annotations"].append(_title(sampled, top, fmt))
    layout["xaxis"] = {
        "anchor": "y" if rows == 1 else f"y{rows}",
        "title": {"text": "seconds since the workload's start"},
        "range": [0, max((line.at_s[-1] for sampled in figures for line in sampled.lines), default=1.0) or 1.0],
    }
    return Plot(
        name="timelines",
        title="By seconds since the workload's start",
        description=f"{rows} figures over time, of {len(seen)} configurations: "
        + ", ".join(f"{sampled.source} {sampled.key}" for sampled in figures)
        + ".",
        figure=figure(traces, **layout),
        height=inner + _FRAME,
        legend=tuple(_legend(results, seen, marks, labels)),
        wide=True,
    )


def _traces(
    sampled: SampledFigure,
    axis: str,
    marks: dict[str, Mark],
    short: dict[str, str],
    fmt: NumberFormat,
    results: Results,
) -> list[dict[str, Any]]:
    # Thin lines first, so that the bold ones lie on them.
    ordered = sorted(sampled.lines, key=lambda line: line.representative)
    traces = [_trace(line, axis, marks[line.configuration], short, fmt) for line in ordered]
    bold = {line.configuration: line for line in sampled.lines if line.representative}
    titles = {metric.name: metric.title for metric in results.metrics}
    for mark in sampled.marks:
        if line := bold.get(mark.configuration):
            title = plain(titles.get(mark.metric, mark.metric))
            traces.append(
                scatter(
                    "markers",
                    [mark.at_s],
                    [fmt.scaled(_value_at(line, mark.at_s))],
                    f"<b>{plain(short[mark.configuration])}</b><br>{title}",
                    yaxis=axis,
                    marker={
                        "symbol": "diamond",
                        "size": 12,
                        "color": marks[mark.configuration].colour,
                        "line": {"width": 1.5, "color": variable("card")},
                    },
                    hoverinfo="x+text",
                )
            )
    return traces


def _trace(line: SampledLine, axis: str, mark: Mark, short: dict[str, str], fmt: NumberFormat) -> dict[str, Any]:
    return scatter(
        "lines",
        list(line.at_s),
        [fmt.scaled(value) for value in line.values],
        f"<b>{plain(short[line.configuration])}</b><br>block {line.block}",
        yaxis=axis,
        line={"color": mark.colour, "width": 2.4 if line.representative else 1},
        opacity=1 if line.representative else 0.4,
        hoverinfo="x+y+text",
    )


def _value_at(line: SampledLine, at_s: float) -> float:
    # On the straight line between two points.
    after = min(bisect_left(line.at_s, at_s), len(line.at_s) - 1)
    before = max(0, after - 1)
    width = line.at_s[after] - line.at_s[before]
    part = (at_s - line.at_s[before]) / width if width > 0 else 1.0
    return line.values[before] + min(1.0, max(0.0, part)) * (line.values[after] - line.values[before])


def _band(sampled: SampledFigure, axis: str) -> list[dict[str, Any]]:
    # From the workload's start to its end: the last one where they differ.
    end_s = max((line.end_s for line in sampled.lines if line.representative), default=0.0)
    return [
        {
            "type": "rect",
            "xref": "x",
            "yref": f"{axis} domain",
            "x0": 0,
            "x1": end_s,
            "y0": 0,
            "y1": 1,
            "fillcolor": variable("band"),
            "line": {"width": 1, "color": variable("line")},
            "layer": "below",
        }
    ]


def _title(sampled: SampledFigure, top: float, fmt: NumberFormat) -> dict[str, Any]:
    unit = "1/s" if fmt.unit == "/s" else fmt.unit
    words = [_WORDS[sampled.shown], f"in {unit}" if unit else ""]
    about = ", ".join(filter(None, words))
    text = f"<b>{plain(sampled.source)} {plain(sampled.key)}</b>"
    return {
        "text": f"{text}<br>{plain(about)}" if about else text,
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": top,
        "yanchor": "bottom",
        "xanchor": "left",
        "align": "left",
        "showarrow": False,
        "font": {"size": 12},
    }


def _legend(results: Results, seen: dict[str, None], marks: dict[str, Mark], labels: Labels) -> list[LegendEntry]:
    entries = [
        LegendEntry(labels.named(c), "line", marks[c.name].role) for c in results.configurations if c.name in seen
    ]
    entries.append(LegendEntry("the workload runs", "area", "band"))
    names = {mark.metric for sampled in TIMELINES.of(results) for mark in sampled.marks}
    if titles := ", ".join(metric.title for metric in results.metrics if metric.name in names):
        entries.append(LegendEntry(titles, "diamond", "muted"))
    return entries

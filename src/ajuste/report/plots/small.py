"""A small plot of a metric that is only described: every trial, configuration beside configuration."""

from __future__ import annotations

from typing import Any, Final

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.report.labels import Labels
from ajuste.report.palette import variable
from ajuste.report.plots.plot import Plot, figure, level_axis
from ajuste.report.plots.trials import (
    MOST_MARKED,
    axis_type,
    configuration_marks,
    exact,
    figure_axis,
    hover_text,
    kind_of,
    place_word,
)

_JITTER: Final = 0.28


def small_plot(results: Results, metric: Metric, labels: Labels, name: str) -> Plot | None:
    """Clean trials in order of blocks from left to right, and a bar at their mean; ``None`` if there are none."""
    clean = [t for t in results.trials if kind_of(t) == "clean" and metric.name in t.metrics]
    if not clean:
        return None
    shown = exact(metric, [t.metrics[metric.name] for t in clean])
    marks = configuration_marks(results)
    last = max(1, max(t.block for t in clean))
    word = place_word(results)
    few = len(results.configurations) <= MOST_MARKED
    traces: list[dict[str, Any]] = []
    for place, configuration in enumerate(results.configurations):
        mine = [t for t in clean if t.configuration == configuration.name]
        role = marks[configuration.name].colour if few else variable("series-1")
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [place + _JITTER * (2 * t.block / last - 1) for t in mine],
                "y": [shown.scaled(t.metrics[metric.name]) for t in mine],
                "marker": {"symbol": marks[configuration.name].symbol if few else "circle", "size": 6, "color": role},
                "hoverinfo": "text",
                "hovertext": [hover_text(t, labels.short(configuration), metric, shown, word) for t in mine],
            }
        )
        if summary := configuration.metrics.get(metric.name):
            traces.append(_bar(place, shown.scaled(summary.mean)))
    ticks = [labels.short(configuration) for configuration in results.configurations]
    axis = level_axis(ticks, width=12)
    if not few:
        axis |= {"showticklabels": False, "ticks": "", "title": {"text": "configurations in their order"}}
    unit = f", {shown.unit}" if shown.unit else ""
    scale = axis_type(t.metrics[metric.name] for t in clean)
    return Plot(
        name=name,
        title=f"{metric.title}{unit}{', logarithmic' if scale == 'log' else ''}",
        description=f"{metric.title}: {len(clean)} clean trials of {len(results.configurations)} configurations.",
        figure=figure(
            traces,
            xaxis={**axis, "showgrid": False},
            yaxis={"nticks": 5, **figure_axis([shown.scaled(t.metrics[metric.name]) for t in clean])},
            margin={"t": 6, "b": 8},
        ),
        height=210,
    )


def _bar(place: int, mean: float) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [place - 0.36, place + 0.36],
        "y": [mean, mean],
        "line": {"color": variable("muted"), "width": 2},
        "hoverinfo": "skip",
    }

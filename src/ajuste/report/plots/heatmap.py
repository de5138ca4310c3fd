"""A metric over the levels of two factors."""

from __future__ import annotations

from typing import Any, Final

from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Results
from ajuste.model.wording import visible_line
from ajuste.report.format import Labels, in_unit
from ajuste.report.plots.plot import Plot, figure, heat_scale, level_axis, plain
from ajuste.report.tables import mean_format

_MOST_WRITTEN: Final = 16  # columns or rows in which there is room for figures


def heatmap_plot(results: Results, metric: Metric, labels: Labels, name: str) -> Plot | None:
    """Return the mean of every combination; ``None`` unless exactly two factors have two levels or more."""
    if len(labels.factors) != 2 or any(len(factor.levels) < 2 for factor in labels.factors):
        return None
    down, across = labels.factors
    fmt = mean_format(results, metric)
    cells = {(c.levels.get(down.name), c.levels.get(across.name)): c for c in results.configurations}
    grid = [[cells.get((d, a)) for a in across.levels] for d in reversed(down.levels)]
    means = [[_mean(cell, metric) for cell in line] for line in grid]
    if all(mean is None for line in means for mean in line):
        return None
    texts = [["–" if mean is None else fmt.text(mean) for mean in line] for line in means]
    hovers = [
        [
            f"<b>{plain(labels.short(cell))}</b><br>{plain(fmt.with_unit(mean))}" if cell and mean is not None else ""
            for cell, mean in zip(line, line_means, strict=True)
        ]
        for line, line_means in zip(grid, means, strict=True)
    ]
    trace = {
        "type": "heatmap",
        "z": [[None if mean is None else fmt.scaled(mean) for mean in line] for line in means],
        "x": list(range(len(across.levels))),
        "y": list(range(len(down.levels))),
        "text": texts,
        "texttemplate": "%{text}" if len(across.levels) <= _MOST_WRITTEN else "",
        "hoverinfo": "text",
        "hovertext": hovers,
        "colorscale": heat_scale(strong_below=metric.direction == "lower"),
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
    }
    strong = "larger" if metric.direction == "none" else "better"
    down_labels = [labels.level(down.name, level) for level in reversed(down.levels)]
    across_labels = [labels.level(across.name, level) for level in across.levels]
    return Plot(
        name=name,
        title=f"Means over both factors{in_unit(fmt.unit)}; stronger is {strong}",
        description=f"{metric.title} for every combination of {down.name} (rows) and {across.name} (columns).",
        figure=figure(
            [trace],
            xaxis=_axis(across.name, across_labels),
            yaxis=_axis(down.name, down_labels),
        ),
        height=90 + (42 if len(down_labels) <= _MOST_WRITTEN else 24) * len(down_labels),
        wide=True,
    )


def _axis(factor: str, levels: list[str]) -> dict[str, Any]:
    return {
        **level_axis(levels, width=10),
        "range": [-0.5, len(levels) - 0.5],
        "title": {"text": plain(visible_line(factor))},
        "showgrid": False,
        "ticks": "",
        "showline": False,
    }


def _mean(cell: Measured | None, metric: Metric) -> float | None:
    summary = cell.metrics.get(metric.name) if cell else None
    return summary.mean if summary else None

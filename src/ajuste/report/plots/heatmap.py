"""A metric over the levels of two factors."""

from __future__ import annotations

from typing import Final

from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Results
from ajuste.report.labels import Labels
from ajuste.report.palette import variable
from ajuste.report.plots.plot import Plot, figure, level_axis, plain
from ajuste.report.rows import metric_shown
from ajuste.report.visible import visible_line

_MOST_WRITTEN: Final = 16  # columns or rows in which there is room for figures
_SHADES: Final = ("heat-0", "heat-1", "heat-2", "heat-3", "heat-4")


def heatmap_plot(results: Results, metric: Metric, labels: Labels, name: str) -> Plot | None:
    """The mean of every combination; ``None`` unless there are exactly two factors with two levels or more."""
    if len(labels.factors) != 2 or any(len(factor.levels) < 2 for factor in labels.factors):
        return None
    down, across = labels.factors
    shown = metric_shown(results, metric)
    cells = {(c.levels.get(down.name), c.levels.get(across.name)): c for c in results.configurations}
    grid = [[cells.get((d, a)) for a in across.levels] for d in reversed(down.levels)]
    means = [[_mean(cell, metric) for cell in line] for line in grid]
    if all(mean is None for line in means for mean in line):
        return None
    texts = [["–" if mean is None else shown.text(mean) for mean in line] for line in means]
    hovers = [
        [
            f"<b>{plain(labels.short(cell))}</b><br>{plain(shown.with_unit(mean))}" if cell and mean is not None else ""
            for cell, mean in zip(line, line_means, strict=True)
        ]
        for line, line_means in zip(grid, means, strict=True)
    ]
    shades = [variable(role) for role in (reversed(_SHADES) if metric.direction == "lower" else _SHADES)]
    trace = {
        "type": "heatmap",
        "z": [[None if mean is None else shown.scaled(mean) for mean in line] for line in means],
        "x": list(range(len(across.levels))),
        "y": list(range(len(down.levels))),
        "text": texts,
        "texttemplate": "%{text}" if len(across.levels) <= _MOST_WRITTEN else "",
        "hoverinfo": "text",
        "hovertext": hovers,
        "colorscale": [[place / (len(shades) - 1), shade] for place, shade in enumerate(shades)],
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
    }
    strong = "larger" if metric.direction == "none" else "better"
    unit = f", in\u00a0{shown.unit}" if shown.unit else ""
    down_labels = [labels.level(down.name, level) for level in reversed(down.levels)]
    across_labels = [labels.level(across.name, level) for level in across.levels]
    return Plot(
        name=name,
        title=f"Means over both factors{unit}; stronger is {strong}",
        description=f"{metric.title} for every combination of {down.name} (rows) and {across.name} (columns).",
        figure=figure(
            [trace],
            xaxis={
                **level_axis(across_labels, width=10),
                "range": [-0.5, len(across_labels) - 0.5],
                "title": {"text": plain(visible_line(across.name))},
                "showgrid": False,
                "ticks": "",
                "showline": False,
            },
            yaxis={
                **level_axis(down_labels, width=10),
                "range": [-0.5, len(down_labels) - 0.5],
                "title": {"text": plain(visible_line(down.name))},
                "showgrid": False,
                "ticks": "",
                "showline": False,
            },
        ),
        height=90 + (42 if len(down_labels) <= _MOST_WRITTEN else 24) * len(down_labels),
        wide=True,
    )


def _mean(cell: Measured | None, metric: Metric) -> float | None:
    summary = cell.metrics.get(metric.name) if cell else None
    return summary.mean if summary else None

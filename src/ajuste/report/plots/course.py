"""How the level of a metric moved over the run, block by block."""

from __future__ import annotations

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.report.palette import variable
from ajuste.report.plots.plot import Plot, figure, plain
from ajuste.report.plots.trial_marks import exact


def course_plot(results: Results, metric: Metric, name: str) -> Plot | None:
    """The mean of every block against that of all; ``None`` where nothing is known of it."""
    courses = results.diagnostics.courses if results.diagnostics is not None else ()
    course = next((one for one in courses if one.metric == metric.name), None)
    if course is None:
        return None
    ratio = course.scale == "ratio"
    shown = exact(metric, course.values)
    values = [100 * (value - 1) if ratio else shown.scaled(value) for value in course.values]
    unit = "%" if ratio else shown.unit
    trace = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(course.blocks),
        "y": values,
        "line": {"width": 1, "color": variable("series-1")},
        "marker": {"size": 5, "color": variable("series-1")},
        "hoverinfo": "text",
        "hovertext": [
            f"block {block}<br>{plain(f'{value:+.3g} {unit}'.rstrip())} from the mean"
            for block, value in zip(course.blocks, values, strict=True)
        ],
    }
    zero = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 0, "y1": 0, "layer": "below"}
    in_unit = f", in\u00a0{unit}" if unit else ""
    return Plot(
        name=name,
        title=f"Level over the run: mean of each block against all{in_unit}",
        description=f"{metric.title}: how far the mean of each block is from the mean of all, by block.",
        figure=figure(
            [trace],
            xaxis={"title": {"text": "block"}},
            shapes=[{**zero, "line": {"color": variable("line"), "width": 1}}],
        ),
        height=220,
        wide=True,
    )

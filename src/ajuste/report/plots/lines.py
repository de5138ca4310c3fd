"""What the whole profile does and each line's share of it, as bars with intervals."""

from __future__ import annotations

from typing import Any, Final

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.verdict import LineEffect
from ajuste.report.effect import effect_style, known
from ajuste.report.lines import lines_on, role_text
from ajuste.report.palette import variable
from ajuste.report.plots.forest import Axis, axis_of, in_words, neutral, x_axis, zone_shapes
from ajuste.report.plots.plot import LegendEntry, Plot, figure, level_axis, plain, plain_lines
from ajuste.report.verdict_words import effect_band
from ajuste.report.visible import visible_line

_LABEL_WIDTH: Final = 34
_MOST: Final = 40  # lines, of the largest shares
_ROW: Final = 34


def lines_plot(results: Results, metric: Metric, name: str) -> Plot | None:
    """``None`` where no profile was taken apart, or nothing is known yet."""
    found = [one for one in lines_on(results, metric.name) if known(one.estimate) is not None][: _MOST + 1]
    if len(found) < 2:
        return None
    style = effect_style(found, metric.unit)[found[0].scale]
    found = [one for one in found if one.scale == found[0].scale]
    axis = axis_of(results, metric, found, style)
    traces = [trace for place, one in enumerate(found) for trace in _bar(len(found) - 1 - place, one, axis)]
    names = ["the whole profile" if one.kind == "whole" else visible_line(one.line) for one in reversed(found)]
    roles = {one.role: LegendEntry(one.role, "square", one.verdict) for one in found if one.kind == "line"}
    band = f"too small to matter ({effect_band(results.smallest_effect)})"
    return Plot(
        name=name,
        title=f"The whole profile, shared out among its lines{in_words(style)}",
        description=f"{metric.title}: what the whole profile does, and below it each line's share of that (its Shapley "
        f"value), from the largest to the smallest, with {100 * results.level:g} % intervals for all together; the "
        f"band is too small to matter.",
        figure=figure(
            traces,
            xaxis=x_axis(axis, metric),
            yaxis=level_axis(names, width=_LABEL_WIDTH),
            shapes=zone_shapes(axis),
            bargap=0.35,
        ),
        height=max(240, 80 + _ROW * len(found)),
        legend=(*roles.values(), LegendEntry("interval", "line", "ink"), LegendEntry(band, "band", "band")),
        wide=True,
    )


def _bar(height: int, line: LineEffect, axis: Axis) -> list[dict[str, Any]]:
    estimate = known(line.estimate)
    if estimate is None:
        return []
    low = axis.low if (bound := known(line.low)) is None else max(axis.low, axis.place(bound))
    high = axis.high if (bound := known(line.high)) is None else min(axis.high, axis.place(bound))
    text = (
        f"<b>{plain_lines(line.line, 40)}</b><br>{plain(axis.style.estimate(line))} "
        f"({plain(axis.style.interval(line))})<br>{plain(role_text(line))}"
        f"<br>{plain_lines(line.reason, 48)}"
    )
    start, end = sorted((axis.place(neutral(axis.style)), axis.place(estimate)))
    common = {"hoverinfo": "text", "hovertext": text}
    half = 0.3
    return [
        {
            **common,
            "type": "scatter",
            "mode": "lines",
            "x": [start, end, end, start, start],
            "y": [height - half, height - half, height + half, height + half, height - half],
            "fill": "toself",
            "fillcolor": variable(line.verdict),
            "line": {"color": variable(line.verdict), "width": 1},
            "opacity": 1.0 if line.kind == "whole" else 0.8,
        },
        {
            **common,
            "type": "scatter",
            "mode": "lines",
            "x": [low, high],
            "y": [height, height],
            "line": {"color": variable("ink"), "width": 2},
        },
    ]

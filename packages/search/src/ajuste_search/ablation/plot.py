"""The effect of the whole profile and each line's share of it, as bars with intervals."""

from __future__ import annotations

from typing import Any, Final

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.verdict import LineEffect
from ajuste.model.wording import visible_line
from ajuste.report.plots.forest import EffectAxis, effect_axis, in_words, neutral, x_axis, zone_legend, zone_shapes
from ajuste.report.plots.plot import LegendEntry, Plot, figure, level_axis, scatter, variable
from ajuste.report.verdicts import known
from ajuste_search.ablation.table import metric_lines, role_text

_LABEL_WIDTH: Final = 34
_MOST: Final = 40  # lines, of the largest shares
_ROW: Final = 34


def lines_plot(results: Results, metric: Metric, name: str) -> Plot | None:
    """Return each line's share; ``None`` if no profile was taken apart, or nothing is known yet."""
    lines = [line for line in metric_lines(results, metric.name) if known(line.estimate) is not None][: _MOST + 1]
    if len(lines) < 2:
        return None
    lines = [line for line in lines if line.scale == lines[0].scale]
    axis = effect_axis(results, metric, lines)
    traces = [trace for place, line in enumerate(lines) for trace in _bar(len(lines) - 1 - place, line, axis)]
    names = ["the whole profile" if line.kind == "whole" else visible_line(line.line) for line in reversed(lines)]
    roles = {line.role: LegendEntry(line.role, "square", line.verdict) for line in lines if line.kind == "line"}
    return Plot(
        name=name,
        title=f"Effect of the whole profile, divided among its lines{in_words(axis.style)}",
        description=f"{metric.title}: the effect of the whole profile, and below it each line's share (its Shapley "
        f"value), from the largest to the smallest, with {100 * results.level:g} % intervals for all together; the "
        f"band is too small to matter.",
        figure=figure(
            traces,
            xaxis=x_axis(axis, metric),
            yaxis=level_axis(names, width=_LABEL_WIDTH),
            shapes=zone_shapes(axis),
            bargap=0.35,
        ),
        height=max(240, 80 + _ROW * len(lines)),
        legend=(*roles.values(), LegendEntry("interval", "line", "ink"), zone_legend(results.smallest_effect)),
        wide=True,
    )


def _bar(height: int, line: LineEffect, axis: EffectAxis) -> list[dict[str, Any]]:
    estimate = known(line.estimate)
    if estimate is None:
        return []
    text = axis.hover_text(line, line.line, role_text(line))
    start, end = sorted((axis.place(neutral(axis.style)), axis.place(estimate)))
    below, above = height - 0.3, height + 0.3
    return [
        scatter(
            "lines",
            [start, end, end, start, start],
            [below, below, above, above, below],
            text,
            fill="toself",
            fillcolor=variable(line.verdict),
            line={"color": variable(line.verdict), "width": 1},
            opacity=1.0 if line.kind == "whole" else 0.8,
        ),
        scatter("lines", axis.interval(line), [height, height], text, line={"color": variable("ink"), "width": 2}),
    ]

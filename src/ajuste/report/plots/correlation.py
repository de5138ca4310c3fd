"""Which metrics go along with a deciding one over the configurations: rank correlations with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.surface import Correlation
from ajuste.report.format import number
from ajuste.report.palette import variable
from ajuste.report.plots.plot import Plot, figure, level_axis, plain
from ajuste.report.visible import visible_line

_MOST: Final = 12
_ROW: Final = 26


def correlation_plot(results: Results, metric: Metric, name: str) -> Plot | None:
    """The strongest of all; ``None`` where there are none."""
    own = [one for one in results.correlations if one.metric == metric.name][:_MOST]
    if not own:
        return None
    titles = {m.name: m.title for m in results.metrics}
    own.reverse()
    rows = list(range(len(own)))
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [one.rho for one in own],
        "y": rows,
        "marker": {"symbol": "circle", "size": 9, "color": variable("series-1")},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [one.high - one.rho for one in own],
            "arrayminus": [one.rho - one.low for one in own],
            "color": variable("series-1"),
            "thickness": 1.5,
            "width": 4,
        },
        "hoverinfo": "text",
        "hovertext": [f"<b>{plain(titles[one.other])}</b><br>{plain(rho_of(one))}" for one in own],
    }
    return Plot(
        name=name,
        title=f"What goes along with {visible_line(metric.title)} (Spearman's ρ)",
        description=f"Rank correlations of {metric.title} with other metrics over {own[0].n} configurations.",
        figure=figure(
            [trace],
            xaxis={
                "range": [-1.05, 1.05],
                "tickvals": [-1, -0.5, 0, 0.5, 1],
                "ticktext": ["−1", "−0.5", "0", "0.5", "1"],
            },
            yaxis=level_axis([visible_line(titles[one.other]) for one in own], width=26),
            shapes=[_zero()],
        ),
        height=max(170, 90 + _ROW * len(own)),
        wide=True,
    )


def rho_of(one: Correlation) -> str:
    """``ρ = 0.93, 0.84 to 0.97``."""
    return f"ρ = {number(one.rho, 2)}, {number(one.low, 2)} to {number(one.high, 2)}"


def strongest(results: Results, metric: Metric) -> Sequence[Correlation]:
    """Those of ``metric`` that are certainly there, with metrics that do not say the same in other words: figures of
    the same unit.
    """
    units = {m.name: m.unit for m in results.metrics}
    return [
        one
        for one in results.correlations
        if one.metric == metric.name and (one.low > 0 or one.high < 0) and not _alike(units[one.other], metric.unit)
    ]


_TIMES: Final = frozenset(("s", "ms", "us", "µs", "ns"))


def _alike(unit: str, other: str) -> bool:
    return bool(unit) and (unit == other or {unit, other} <= _TIMES)


def _zero() -> dict[str, object]:
    line = {"color": variable("line"), "width": 1}
    return {"type": "line", "x0": 0, "x1": 0, "yref": "paper", "y0": 0, "y1": 1, "line": line, "layer": "below"}

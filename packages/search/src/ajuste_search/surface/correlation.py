"""Metrics that go along with a deciding one over the configurations: rank correlations with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.surface import CORRELATIONS, Correlation
from ajuste.model.wording import visible_line
from ajuste.report.format import number
from ajuste.report.plots.plot import Plot, error_bars, figure, level_axis, line_at, plain, scatter, variable

_MOST: Final = 12
_ROW: Final = 26


def correlation_plot(results: Results, metric: Metric, name: str) -> Plot | None:
    """Return the strongest correlations; ``None`` where there are none."""
    correlations = [each for each in CORRELATIONS.of(results) if each.metric == metric.name][:_MOST]
    if not correlations:
        return None
    titles = {m.name: m.title for m in results.metrics}
    correlations.reverse()
    rows = list(range(len(correlations)))
    trace = scatter(
        "markers",
        [correlation.rho for correlation in correlations],
        rows,
        [
            f"<b>{plain(titles[correlation.other])}</b><br>{plain(correlation_text(correlation))}"
            for correlation in correlations
        ],
        marker={"symbol": "circle", "size": 9, "color": variable("series-1")},
        error_x=error_bars(
            [correlation.high - correlation.rho for correlation in correlations],
            [correlation.rho - correlation.low for correlation in correlations],
            variable("series-1"),
            thickness=1.5,
            width=4,
        ),
    )
    return Plot(
        name=name,
        title=f"Correlation of other metrics with {visible_line(metric.title)} (Spearman's ρ)",
        description=f"Rank correlations of {metric.title} with other metrics over {correlations[0].n} configurations.",
        figure=figure(
            [trace],
            xaxis={
                "range": [-1.05, 1.05],
                "tickvals": [-1, -0.5, 0, 0.5, 1],
                "ticktext": ["−1", "−0.5", "0", "0.5", "1"],
            },
            yaxis=level_axis([visible_line(titles[correlation.other]) for correlation in correlations], width=26),
            shapes=[line_at(x=0)],
        ),
        height=max(170, 90 + _ROW * len(correlations)),
        wide=True,
    )


def correlation_text(correlation: Correlation) -> str:
    """Return ``ρ = 0.93, 0.84 to 0.97``."""
    return f"ρ = {number(correlation.rho, 2)}, {number(correlation.low, 2)} to {number(correlation.high, 2)}"


def strongest(results: Results, metric: Metric) -> Sequence[Correlation]:
    """Return the certain correlations of ``metric`` with metrics of another unit: those of the same unit repeat it."""
    units = {m.name: m.unit for m in results.metrics}
    return [
        correlation
        for correlation in CORRELATIONS.of(results)
        if correlation.metric == metric.name
        and (correlation.low > 0 or correlation.high < 0)
        and not _alike(units[correlation.other], metric.unit)
    ]


_TIMES: Final = frozenset(("s", "ms", "us", "µs", "ns"))


def _alike(unit: str, other: str) -> bool:
    return bool(unit) and (unit == other or {unit, other} <= _TIMES)

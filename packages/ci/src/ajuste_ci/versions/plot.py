"""A metric through versions of a kernel or a project: a line for each flavour, change points, where EEVDF began."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from ajuste.model.history import History, VersionPoint
from ajuste.model.kernel import KernelVersion
from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.trial import KERNEL_FACTOR
from ajuste.model.wording import change, visible_line
from ajuste.report.format import Labels, NumberFormat, in_unit
from ajuste.report.plots.plot import (
    SERIES,
    LegendEntry,
    Mark,
    Plot,
    error_bars,
    figure,
    line_at,
    mark,
    plain,
    scatter,
    variable,
)
from ajuste.report.plots.trials import exact, figure_axis

_HEIGHT: Final = 320
_REACH: Final = 1.0  # times the distance of the points: as far as intervals are drawn beyond them
_PAD: Final = 0.12  # of the axis, for the figures at change points


def history_plot(results: Results, histories: Sequence[History], labels: Labels, name: str) -> Plot:
    """Return the lines of ``histories``, all of one metric."""
    metric = next(metric for metric in results.metrics if metric.name == histories[0].metric)
    fmt = exact(metric, [point.value for history in histories for point in history.points])
    versions = list(dict.fromkeys(point.version for history in histories for point in history.points))
    if _of_kernels(histories):
        versions = [str(version) for version in sorted(set(map(KernelVersion.parse, versions)))]
    at = {version: place for place, version in enumerate(versions)}
    traces: list[dict[str, Any]] = []
    for place, history in enumerate(histories):
        series = mark(place if len(histories) > 1 else 1)
        traces += [_line(history, at, series, fmt), *_changes(history, at, metric, fmt)]
    # Half way between the last version with CFS and the first with EEVDF.
    scheduler = {at[point.version]: point.scheduler for history in histories for point in history.points}
    changes = (before + 0.5 for before, after in pairwise(sorted(scheduler)) if scheduler[before] != scheduler[after])
    border = next(changes, None)
    return Plot(
        name=name,
        title=f"{visible_line(metric.title)} through the versions{in_unit(fmt.unit)}",
        description=f"{metric.title} for each version, with intervals, and where it changed.",
        figure=figure(
            traces,
            xaxis={
                "tickmode": "array",
                "tickvals": list(range(len(versions))),
                "ticktext": [plain(version) for version in versions],
                "range": [-0.4, len(versions) - 0.6],
                "title": {"text": "Linux" if _of_kernels(histories) else "Commit"},
            },
            yaxis=_y_axis(histories, fmt),
            shapes=[] if border is None else [line_at(x=border, role="muted", dash="dash")],
            annotations=[] if border is None else _schedulers(border),
        ),
        height=_HEIGHT,
        legend=_legend(histories, labels),
        wide=True,
    )


def line_name(history: History, labels: Labels) -> str:
    """Return what sets a history apart from others of its metric: kernel flavour, levels of other factors."""
    flavour = {"": "cloud", "rt": "PREEMPT_RT"}.get(history.flavour, history.flavour)
    fixed = [labels.level(name, level) for name, level in history.fixed.items()]
    return ", ".join([flavour, *fixed] if history.factor == KERNEL_FACTOR else fixed)


def _of_kernels(histories: Sequence[History]) -> bool:
    return histories[0].factor == KERNEL_FACTOR


def _line(history: History, at: dict[str, int], series: Mark, fmt: NumberFormat) -> dict[str, Any]:
    points = history.points
    return scatter(
        "lines+markers",
        [at[point.version] for point in points],
        [fmt.scaled(point.value) for point in points],
        [_hover(point, fmt) for point in points],
        line={"color": series.colour, "width": 2},
        marker={"symbol": series.symbol, "size": 9, "color": series.colour},
        error_y=error_bars(
            [0.0 if p.high is None else fmt.scaled(p.high - p.value) for p in points],
            [0.0 if p.low is None else fmt.scaled(p.value - p.low) for p in points],
            series.colour,
            thickness=1.2,
            width=4,
        ),
    )


def _hover(point: VersionPoint, fmt: NumberFormat) -> str:
    bounds = ""
    if point.low is not None and point.high is not None:
        bounds = f"<br>{plain(fmt.text(point.low))} … {plain(fmt.with_unit(point.high))}"
    named = ", ".join(filter(None, (f"<b>{plain(point.level)}</b>", plain(point.scheduler))))
    return f"{named}<br>{plain(fmt.with_unit(point.value))}{bounds}"


def _changes(history: History, at: dict[str, int], metric: Metric, fmt: NumberFormat) -> list[dict[str, Any]]:
    # A diamond half way between the versions, with the change beside the line.
    if not history.changes:
        return []
    values = {point.version: fmt.scaled(point.value) for point in history.points}
    return [
        scatter(
            "markers+text",
            [(at[step.before] + at[step.after]) / 2 for step in history.changes],
            [(values[step.before] + values[step.after]) / 2 for step in history.changes],
            marker={"symbol": "diamond", "size": 9, "color": variable("ink")},
            text=[plain(change(step.change, history.scale, metric.unit)) for step in history.changes],
            textposition=[
                "top left" if values[step.after] > values[step.before] else "top right" for step in history.changes
            ],
            textfont={"size": 12, "color": variable("ink")},
            cliponaxis=False,
        )
    ]


def _schedulers(border: float) -> list[dict[str, Any]]:
    common = {"x": border, "yref": "paper", "y": 1, "yanchor": "top", "showarrow": False}
    font = {"size": 12, "color": variable("muted")}
    return [
        {**common, "text": "CFS", "xanchor": "right", "xshift": -6, "font": font},
        {**common, "text": "EEVDF", "xanchor": "left", "xshift": 6, "font": font},
    ]


def _y_axis(histories: Sequence[History], fmt: NumberFormat) -> dict[str, Any]:
    # With room for all points, and for intervals as far as these lie apart.
    points = [point for history in histories for point in history.points]
    values = [fmt.scaled(point.value) for point in points]
    axis = figure_axis(values)
    if axis.get("type") == "log":
        low, high = math.log10(min(values)), math.log10(max(values))
        return {**axis, "range": [low - _PAD * (high - low), high + 2 * _PAD * (high - low)]}
    reach = _REACH * (max(values) - min(values)) or abs(values[0]) / 10 or 1.0
    ends = [fmt.scaled(end) for point in points for end in (point.low, point.high) if end is not None]
    near = [*values, *(min(max(values) + reach, max(min(values) - reach, end)) for end in ends)]
    pad = _PAD * (max(near) - min(near) or reach)
    return {**axis, "range": [min(near) - pad, max(near) + 2 * pad]}


def _legend(histories: Sequence[History], labels: Labels) -> tuple[LegendEntry, ...]:
    lines = [
        LegendEntry(line_name(history, labels), mark(place % SERIES).symbol, mark(place % SERIES).role)
        for place, history in enumerate(histories)
        if len(histories) > 1
    ]
    changed = any(history.changes for history in histories)
    return (*lines, *((LegendEntry("change point", "diamond", "ink"),) if changed else ()))

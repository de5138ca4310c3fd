"""The axes of a surface as they are drawn: levels where their values are, on a linear or a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Results
from ajuste.model.surface import Curve, Region, Surface, SurfaceAxis, SurfacePoint
from ajuste.model.wording import change, visible_line
from ajuste.report.format import Labels, NumberFormat, in_unit
from ajuste.report.plots.plot import (
    SERIES,
    LegendEntry,
    Mark,
    Plot,
    error_bars,
    figure,
    mark,
    plain,
    scatter,
    spaced,
    variable,
)
from ajuste.report.plots.trials import exact, figure_axis
from ajuste_stats.terms import Shape

_NARROWEST: Final = 230  # pixels between the first and the last level
_LETTER: Final = 7.5  # pixels
_LINE: Final = 16  # pixels

ROLES: Final[dict[Shape, str]] = {
    "fast fall": "fall-3",
    "fall": "fall-2",
    "slow fall": "fall-1",
    "flat": "still",
    "slow rise": "rise-1",
    "rise": "rise-2",
    "fast rise": "rise-3",
    "oscillating": "wave",
}

_HEIGHT: Final = 300
_ROW: Final = 17
_AROUND: Final = 70  # pixels of a figure's height that are not its curves or regions
_LEAST_REACH: Final = 0.02  # of the figures
_PAD: Final = 0.05  # of the axis, at both ends
_APART: Final = 0.006  # of the axis, between lines, so that intervals do not hide each other
Line = tuple[dict[str, str], list[tuple[float, SurfacePoint]]]


@dataclass(frozen=True)
class View:
    """A surface with what is needed to draw it. ``cells`` are its points by the levels along its axes, ``names`` are
    what factors are called where that is not their own name.
    """

    results: Results
    surface: Surface
    metric: Metric
    labels: Labels
    fmt: NumberFormat
    cells: dict[tuple[str, ...], SurfacePoint]
    configurations: dict[str, Measured]
    names: Mapping[str, str]

    def factor(self, name: str) -> str:
        return self.names.get(name) or visible_line(name)

    @property
    def unit(self) -> str:
        return in_unit(self.fmt.unit)

    def name(self, configuration: str) -> str:
        """Return the levels of a configuration along the axes."""
        levels = self.configurations[configuration].levels
        return ", ".join(self.labels.level(axis.factor, levels[axis.factor]) for axis in self.surface.axes)

    def bounds(self, point: SurfacePoint) -> str:
        """Return the point's interval in words."""
        if point.low is None or point.high is None:
            return "no interval yet"
        return f"{self.fmt.text(point.low)} … {self.fmt.with_unit(point.high)}"


def surface_view(results: Results, surface: Surface, labels: Labels, names: Mapping[str, str]) -> View:
    """Return ``surface``, of ``results``, prepared for drawing."""
    configurations = {c.name: c for c in results.configurations}
    metric = next(metric for metric in results.metrics if metric.name == surface.metric)
    cells = {
        tuple(configurations[point.configuration].levels[axis.factor] for axis in surface.axes): point
        for point in surface.points
    }
    return View(
        results=results,
        surface=surface,
        metric=metric,
        labels=labels,
        fmt=exact(metric, [point.value for point in surface.points]),
        cells=cells,
        configurations=configurations,
        names=names,
    )


def places(axis: SurfaceAxis) -> list[float]:
    """Return the places of the levels: plotly's logarithmic axes have no cells of unequal width."""
    return [math.log10(value) for value in axis.values] if axis.scale == "log" else list(axis.values)


def edges(axis: SurfaceAxis) -> list[float]:
    """Return the bounds of the levels' cells: half way to the neighbours, and as far at the ends."""
    at = places(axis)
    middles = [(left + right) / 2 for left, right in pairwise(at)]
    return [2 * at[0] - middles[0], *middles, 2 * at[-1] - middles[-1]]


def level_ticks(axis: SurfaceAxis, labels: Labels, *, upright: bool = False) -> dict[str, Any]:
    """Return ticks at all levels, with labels where there is room on a telephone, the last one always.

    A unit that all levels have stands in the title.
    """
    at = places(axis)
    texts, unit = [labels.level(axis.factor, level) for level in axis.levels], ""
    parts = [text.rpartition(" ") for text in texts]
    units = {end for _, _, end in parts}
    if len(units) == 1 and all(number for number, _, _ in parts):  # `1 ms`, `4 ms` as `1`, `4` and `ms`
        texts, unit = [number for number, _, _ in parts], units.pop()
    room = _LINE if upright else _LETTER * (max(map(len, texts)) + 1)
    labelled = spaced(at, room / _NARROWEST * (at[-1] - at[0]))
    about = [f"in\u00a0{plain(unit)}" if unit else "", "logarithmic" if axis.scale == "log" else ""]
    return {
        "tickmode": "array",
        "tickvals": at,
        "ticktext": [plain(text) if place in labelled else "" for place, text in zip(at, texts, strict=True)],
        "tickangle": 0,
        "title": {"text": ", ".join(filter(None, (plain(visible_line(axis.factor)), *about)))},
    }


# A metric along one numeric factor, a line for each level of the other one, and below it the regions of each line.


def surface_curves(view: View, along: int, name: str) -> Plot | None:
    """Return the curves along axis ``along``; ``None`` for fewer than three points on every line.

    Of more lines than can be distinguished some at even distances are shown, with those of the baseline and the best.
    """
    axis = view.surface.axes[along]
    lines = _chosen(view, [line for line in _lines(view, axis) if len(line[1]) > 2])
    if not lines:
        return None
    series = [mark(place if len(lines) > 1 else 1) for place in range(len(lines))]
    curves = [next((c for c in view.surface.curves if (c.along, c.fixed) == (axis.factor, f)), None) for f, _ in lines]
    divided = [place for place, curve in enumerate(curves) if curve and curve.regions]
    at = places(axis)
    apart = _APART * (at[-1] - at[0])
    traces = [
        _line(view, line, series[place], apart * (place - (len(lines) - 1) / 2)) for place, line in enumerate(lines)
    ]
    for row, place in enumerate(reversed(divided)):
        curve = curves[place]
        traces += _strip(view, axis, curve, row) if curve else []
    alone = len(view.surface.axes) == 1
    traces += _marked(view, lines[0]) if alone else []
    height = _HEIGHT + _AROUND + _ROW * len(divided)
    above_strips = [(_ROW * len(divided) + 14) / (height - _AROUND), 1] if divided else [0, 1]
    other = next((candidate for candidate in view.surface.axes if candidate.factor != axis.factor), None)
    strip_labels = [_fixed_levels(view, lines[place][0]) for place in reversed(divided)]
    return Plot(
        name=name,
        title=f"{visible_line(view.metric.title)} against {visible_line(axis.factor)}{view.unit}",
        description=f"{view.metric.title} against {axis.factor}"
        + (f", a line for each level of {other.factor}" if other else "")
        + ", with intervals, and the regions of each line.",
        figure=figure(
            traces,
            xaxis={**level_ticks(axis, view.labels), "anchor": "y2" if divided else "y"},
            yaxis={**_y_axis(view), "domain": above_strips},
            **({"yaxis2": _strip_axis(strip_labels, height)} if divided else {}),
        ),
        height=height,
        legend=(
            *(_best_legend(view) if alone else ()),
            *_legend(view, lines, series, [curve for curve in curves if curve]),
        ),
        legend_title=visible_line(other.factor) if other else "",
        wide=alone and view.surface.deciding,
    )


def _lines(view: View, axis: SurfaceAxis) -> list[Line]:
    at = dict(zip(axis.levels, places(axis), strict=True))
    other = next((candidate for candidate in view.surface.axes if candidate.factor != axis.factor), None)
    lines: list[Line] = []
    for level in other.levels if other else ("",):
        points = []
        for point in view.cells.values():
            levels = view.configurations[point.configuration].levels
            if other is None or levels[other.factor] == level:
                points.append((at[levels[axis.factor]], point))
        lines.append(({other.factor: level} if other else {}, sorted(points, key=lambda pair: pair[0])))
    return lines


def _chosen(view: View, lines: list[Line]) -> list[Line]:
    if len(lines) <= SERIES:
        return lines
    wanted = [c for c in (view.surface.best, *(c.name for c in view.configurations.values() if c.baseline)) if c]
    chosen = {place for place, (_, points) in enumerate(lines) if any(p.configuration in wanted for _, p in points)}
    step = (len(lines) - 1) / (SERIES - 1)
    for place in (round(step * index) for index in range(SERIES)):
        chosen |= {place} if len(chosen) < SERIES else set()
    return [lines[place] for place in sorted(chosen)]


def _line(view: View, line: Line, series: Mark, shift: float) -> dict[str, Any]:
    points = line[1]
    values = [view.fmt.scaled(point.value) for _, point in points]
    above = [0.0 if p.high is None else view.fmt.scaled(p.high - p.value) for _, p in points]
    below = [0.0 if p.low is None else view.fmt.scaled(p.value - p.low) for _, p in points]
    return scatter(
        "lines+markers",
        [x + shift for x, _ in points],
        values,
        [
            f"<b>{plain(view.name(p.configuration))}</b><br>{plain(view.fmt.with_unit(p.value))}"
            f"<br>{plain(view.bounds(p))}"
            for _, p in points
        ],
        line={"color": series.colour, "width": 2},
        marker={"symbol": series.symbol, "size": 8, "color": series.colour},
        error_y=error_bars(above, below, series.colour, thickness=1.2, width=3),
    )


def _marked(view: View, line: Line) -> list[dict[str, Any]]:
    # The best and what is not distinguishable from it, where no map shows them.
    kinds: dict[str, tuple[str | None, ...]] = {"star": (view.surface.best,), "circle-open": _others(view)}
    made = []
    for symbol, names in kinds.items():
        points = [(x, view.fmt.scaled(p.value)) for x, p in line[1] if p.configuration in names]
        edge = {"width": 1 if symbol == "star" else 2, "color": variable("card" if symbol == "star" else "series-2")}
        made.append(
            scatter(
                "markers",
                [x for x, _ in points],
                [y for _, y in points],
                marker={"symbol": symbol, "size": 15, "color": variable("series-2"), "line": edge},
            )
        )
    return [trace for trace in made if trace["x"]]


def _others(view: View) -> tuple[str, ...]:
    # What is not distinguishable from the best, unless that is all.
    surface = view.surface
    return surface.best_set if len(surface.best_set) < len(surface.points) else ()


def _best_legend(view: View) -> tuple[LegendEntry, ...]:
    if view.surface.best is None:
        return ()
    alike = LegendEntry("not distinguishable from the best", "circle-open", "series-2")
    return (
        LegendEntry(f"best: {view.name(view.surface.best)}", "star", "series-2"),
        *((alike,) if len(_others(view)) > 1 else ()),
    )


def _y_axis(view: View) -> dict[str, Any]:
    # Wide enough for all points, and for intervals as far as they are not wider than these lie apart.
    points = list(view.cells.values())
    values = [view.fmt.scaled(point.value) for point in points]
    axis = figure_axis(values)
    place: Callable[[float], float] = math.log10 if axis.get("type") == "log" else float
    ends = [view.fmt.scaled(end) for point in points for end in (point.low, point.high) if end is not None]
    at = [place(value) for value in values]
    reach = max(max(at) - min(at), _LEAST_REACH * max(abs(value) for value in at)) or 1.0
    least, most = min(at) - reach, max(at) + reach
    near = [*at, *(min(most, max(least, place(end) if end > 0 or place is float else least)) for end in ends)]
    pad = _PAD * (max(near) - min(near))
    return {**axis, "range": [min(near) - pad, max(near) + pad]}


def _strip(view: View, axis: SurfaceAxis, curve: Curve, row: int) -> list[dict[str, Any]]:
    at = dict(zip(axis.levels, places(axis), strict=True))
    return [
        scatter(
            "lines",
            [at[region.first], (at[region.first] + at[region.last]) / 2, at[region.last]],
            [row, row, row],
            [plain(in_words(view, axis, region))] * 3,
            yaxis="y2",
            line={"color": variable(ROLES[region.shape]), "width": 9},
        )
        for region in curve.regions
    ]


def in_words(view: View, axis: SurfaceAxis, region: Region) -> str:
    """``fast fall from 1 ms to 8 ms (−24 %)``; for a curve without a trend, the range of its values."""
    first, last = (view.labels.level(axis.factor, level) for level in (region.first, region.last))
    scale, unit = view.surface.scale, view.metric.unit
    if region.shape in ("flat", "oscillating"):
        figure = f"within {change(region.span, scale, unit).lstrip('+')}"
    else:
        figure = change(region.change, scale, unit)
    return f"{region.shape} from {first} to {last} ({figure})"


def _strip_axis(labels: list[str], height: int) -> dict[str, Any]:
    return {
        "domain": [0, _ROW * len(labels) / (height - _AROUND)],
        "range": [-0.6, len(labels) - 0.4],
        "tickmode": "array",
        "tickvals": list(range(len(labels))),
        "ticktext": [plain(text) for text in labels],
        "tickfont": {"size": 11},
        "showgrid": False,
        "ticks": "",
        "fixedrange": True,
    }


def _fixed_levels(view: View, fixed: dict[str, str]) -> str:
    return ", ".join(view.labels.level(factor, level) for factor, level in fixed.items())


def _legend(view: View, lines: list[Line], series: list[Mark], curves: Sequence[Curve]) -> tuple[LegendEntry, ...]:
    several = [
        LegendEntry(_fixed_levels(view, fixed), series[place].symbol, series[place].role)
        for place, (fixed, _) in enumerate(lines)
        if len(lines) > 1
    ]
    shapes = {region.shape for curve in curves for region in curve.regions}
    return (*several, *(LegendEntry(shape, "area", role) for shape, role in ROLES.items() if shape in shapes))

"""A metric over the levels of two numeric factors as a map with contours, the baseline, and the set of the best."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ajuste.model.wording import visible_line
from ajuste.report.format import number, significant
from ajuste.report.plots.plot import LegendEntry, Plot, figure, heat_scale, plain, scatter, variable
from ajuste.report.plots.trials import axis_type
from ajuste_search.surface.curves import View, edges, level_ticks, places

Array = NDArray[np.float64]

_NARROWEST_WRITTEN: Final = 0.075  # of the map's width or height, a cell that has room for its figure
_FADED: Final = 0.45
_CONTOURS: Final = 8


def surface_map(view: View, name: str, *, wide: bool = False) -> Plot | None:
    """Return the map; ``None`` unless there are two axes whose levels were tried in several combinations."""
    axes = view.surface.axes
    if len(axes) != 2 or len(view.cells) < len(axes[0].levels) + len(axes[1].levels):
        return None
    across, up = axes
    # Figures in the unit that is shown: a row for each level upwards, NaN where nothing was measured.
    points = [[view.cells.get((a, u)) for a in across.levels] for u in up.levels]
    measured = np.array([[view.fmt.scaled(p.value) if p else np.nan for p in row] for row in points])
    scaled = np.log10(measured) if axis_type(measured[np.isfinite(measured)]) == "log" else measured
    filled = _interpolated(scaled)
    guessed = np.where(np.isfinite(scaled), np.nan, filled)
    limits = float(np.nanmin(filled)), float(np.nanmax(filled))
    traces = [_cells(view, scaled, limits, wide=wide), *_contours(view, filled, limits)]
    if np.any(np.isfinite(guessed)):
        measured_names = [point.configuration for point in view.cells.values()]
        hovers = [["interpolated, not measured" if np.isfinite(value) else "" for value in row] for row in guessed]
        traces.append({**_heat(view, guessed, limits), "opacity": _FADED, "hovertext": hovers})
        traces.append(_marks(view, measured_names, "circle", 5, "muted"))
    baseline = [c.name for c in view.configurations.values() if c.baseline]
    traces += _outline(view, view.surface.best_set, "solid") + _outline(view, baseline, "dash")
    traces += [_marks(view, [view.surface.best], "star", 13, "series-2")] if view.surface.best else []
    strong = "larger" if view.metric.direction == "none" else "better"
    return Plot(
        name=name,
        title=f"{visible_line(view.metric.title)} over both{view.unit}; stronger is {strong}",
        description=f"{view.metric.title} over {across.factor} (across) and {up.factor} (up), with contours.",
        figure=figure(
            traces,
            xaxis={**level_ticks(across, view.labels), "range": _range(edges(across)), **_BARE},
            yaxis={**level_ticks(up, view.labels, upright=True), "range": _range(edges(up)), **_BARE},
        ),
        height=480 if wide else 380,
        legend=_legend(view, guessed=bool(np.any(np.isfinite(guessed)))),
        wide=wide,
    )


_BARE: Final = {"showgrid": False, "showline": False}


def _range(bounds: list[float]) -> list[float]:
    return [bounds[0], bounds[-1]]


def _interpolated(grid: Array) -> Array:
    # With what lies between measured cells, as far as these enclose it in a row or column: linear between the nearest
    # of each, the mean where there are both, and from those on.
    while True:
        rows = np.apply_along_axis(_between, 1, grid)
        columns = np.apply_along_axis(_between, 0, grid)
        both = np.where(np.isnan(rows), columns, np.where(np.isnan(columns), rows, (rows + columns) / 2))
        if np.array_equal(np.isnan(both), np.isnan(grid)):
            return both
        grid = both


def _between(values: Array) -> Array:
    places, have = np.arange(len(values)), np.isfinite(values)
    if not have.any():
        return values
    return np.interp(places, places[have], values[have], left=np.nan, right=np.nan)


def _heat(view: View, z: Array, limits: tuple[float, float]) -> dict[str, Any]:
    across, up = view.surface.axes
    return {
        "type": "heatmap",
        "x": edges(across),
        "y": edges(up),
        "z": _listed(z),
        "zmin": limits[0],
        "zmax": limits[1] if limits[1] > limits[0] else limits[0] + 1,
        "colorscale": heat_scale(strong_below=view.metric.direction == "lower"),
        "showscale": False,
        "hoverinfo": "text",
        "xgap": 1,
        "ygap": 1,
    }


def _cells(view: View, z: Array, limits: tuple[float, float], *, wide: bool) -> dict[str, Any]:
    across, up = view.surface.axes
    written = wide and all(_narrowest(edges(axis)) >= _NARROWEST_WRITTEN for axis in (across, up))
    texts = [
        [view.fmt.text(p.value) if (p := view.cells.get((a, u))) else "" for a in across.levels] for u in up.levels
    ]
    return {
        **_heat(view, z, limits),
        "hovertext": [[_hover(view, (a, u)) for a in across.levels] for u in up.levels],
        **({"text": texts, "texttemplate": "%{text}"} if written else {}),
        "showscale": True,
        "colorbar": _bar(view, limits),
    }


def _narrowest(bounds: list[float]) -> float:
    return float(np.min(np.diff(bounds))) / (bounds[-1] - bounds[0])


def _hover(view: View, levels: tuple[str, ...]) -> str:
    point = view.cells.get(levels)
    if point is None:
        return ""
    lines = [
        f"<b>{plain(view.name(point.configuration))}</b>",
        plain(f"{visible_line(view.metric.title)}: {view.fmt.with_unit(point.value)}"),
        plain(view.bounds(point)),
    ]
    if point.configuration == view.surface.best:
        lines.append("the best value")
    elif point.configuration in view.surface.best_set:
        lines.append("not distinguishable from the best")
    if view.configurations[point.configuration].baseline:
        lines.append("the baseline")
    return "<br>".join(lines)


def _bar(view: View, limits: tuple[float, float]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "orientation": "h",
        "x": 0.5,
        "y": 1,
        "yanchor": "bottom",
        "ypad": 6,
        "thickness": 9,
        "outlinewidth": 0,
        "tickfont": {"color": variable("muted"), "size": 11},
        "nticks": 6,
        "tickformat": ",~g",
    }
    if axis_type([view.fmt.scaled(point.value) for point in view.cells.values()]) == "log":
        ends = [math.ceil(limits[0]), math.floor(limits[1])]
        at = [float(power) for power in range(ends[0], ends[1] + 1)] or list(limits)
        made |= {
            "tickmode": "array",
            "tickvals": at,
            "ticktext": [number(10.0**x, 0) if x > 0 else significant(10.0**x, 2) for x in at],
        }
    return made


def _contours(view: View, z: Array, limits: tuple[float, float]) -> list[dict[str, Any]]:
    # Each line twice, so that it is seen on dark and on light ground.
    across, up = view.surface.axes
    size = (limits[1] - limits[0]) / _CONTOURS or 1.0
    return [
        {
            "type": "contour",
            "x": places(across),
            "y": places(up),
            "z": _listed(z),
            "autocontour": False,
            "contours": {"coloring": "none", "start": limits[0] + size / 2, "end": limits[1], "size": size},
            "line": {"color": variable(role), "width": width},
            "opacity": opacity,
            "showscale": False,
            "hoverinfo": "skip",
            "connectgaps": False,
        }
        for role, width, opacity in (("card", 3, 0.55), ("ink", 1, 1))
    ]


def _marks(view: View, names: list[str], symbol: str, size: int, role: str) -> dict[str, Any]:
    across, up = view.surface.axes
    at = [(level_index(view, name, 0), level_index(view, name, 1)) for name in names]
    high = np.diff(edges(up)) / 3 if symbol == "star" else np.zeros(len(up.levels))
    return scatter(
        "markers",
        [places(across)[a] for a, _ in at],
        [places(up)[u] + float(high[u]) for _, u in at],
        marker={
            "symbol": symbol,
            "size": size,
            "color": variable(role),
            "line": {"width": 1, "color": variable("card")},
        },
    )


def level_index(view: View, configuration: str, axis: int) -> int:
    """Return the place of a configuration's level along one of the surface's axes."""
    surface_axis = view.surface.axes[axis]
    return surface_axis.levels.index(view.configurations[configuration].levels[surface_axis.factor])


def _outline(view: View, names: tuple[str, ...] | list[str], dash: str) -> list[dict[str, Any]]:
    # The border around the cells of `names`; nothing around none or all of them.
    on = {point.configuration for point in view.cells.values()}
    cells = {(level_index(view, name, 0), level_index(view, name, 1)) for name in names if name in on}
    if not cells or len(cells) == len(on):
        return []
    x, y = (edges(axis) for axis in view.surface.axes)
    xs: list[float | None] = []
    ys: list[float | None] = []
    for (column, row), (right, above) in product(sorted(cells), ((-1, 0), (1, 0), (0, -1), (0, 1))):
        if (column + right, row + above) not in cells:
            ends = (column + (right > 0), row + (above > 0)), (column + (right >= 0), row + (above >= 0))
            xs += [x[ends[0][0]], x[ends[1][0]], None]
            ys += [y[ends[0][1]], y[ends[1][1]], None]
    line = {"color": variable("series-2" if dash == "solid" else "ink"), "width": 3 if dash == "solid" else 2}
    return [scatter("lines", xs, ys, line={**line, "dash": dash})]


def _legend(view: View, *, guessed: bool) -> tuple[LegendEntry, ...]:
    surface = view.surface
    entries = []
    if surface.best:
        entries.append(LegendEntry(f"best: {view.name(surface.best)}", "star", "series-2"))
    if 0 < len(surface.best_set) < len(surface.points):
        text = f"not distinguishable from the best ({len(surface.best_set)} of {len(surface.points)})"
        entries.append(LegendEntry(text, "line", "series-2"))
    if any(view.configurations[point.configuration].baseline for point in surface.points):
        entries.append(LegendEntry("baseline", "dash", "ink"))
    if guessed:
        entries += [
            LegendEntry("measured", "circle", "muted"),
            LegendEntry("faded: interpolated, not measured", "area", "heat-1"),
        ]
    return tuple(entries)


def _listed(z: Array) -> list[list[float | None]]:
    return [[float(value) if math.isfinite(value) else None for value in row] for row in z]

"""Traces of plotly's figures drawn with matplotlib: the kinds that the report's plots are made of."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from ajuste.report.plots.plot import ROLES

_VARIABLE: Final = re.compile(r"var\(--([a-z0-9-]+)\)")
_TAG: Final = re.compile(r"</?b>")
_SYMBOLS: Final = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "diamond-cross": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "triangle-left": "<",
    "triangle-right": ">",
    "pentagon": "p",
    "hexagon": "h",
    "star": "*",
    "x-thin": "x",
    "line-ns": "|",
    "line-ew": "_",
}
POINTS: Final = 0.75
"""Points (1/72 inch) in a CSS pixel."""
RC: Final[dict[Any, Any]] = {
    "font.size": 9.5,
    "font.family": ["DejaVu Sans"],
    "svg.fonttype": "none",
    "svg.hashsalt": "ajuste",
    "text.parse_math": False,
    "axes.unicode_minus": True,
}
"""Text stays text in an SVG, is never taken for a formula, and the same picture has the same bytes."""


def role(name: str) -> str:
    """Return a colour of the light theme."""
    return ROLES[name][0]


def colour(value: str) -> str:
    """Return the colour that ``var(--ink)`` names."""
    match = _VARIABLE.fullmatch(value)
    return role(match[1]) if match else value


def words(text: str) -> str:
    """Return Plotly's text without its tags."""
    return html.unescape(_TAG.sub("", text.replace("<br>", "\n")))


def symbol(name: str) -> tuple[str, bool]:
    """Return the marker, and whether it is hollow."""
    return _SYMBOLS.get(name.removesuffix("-open"), "o"), name.endswith("-open")


def numbers(values: Iterable[float | None]) -> NDArray[np.float64]:
    """Return an array, with NaN for what is missing."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def shades(scale: Sequence[tuple[float, str]]) -> LinearSegmentedColormap:
    """Return a scale of colours, such as Plotly's, as matplotlib's."""
    return LinearSegmentedColormap.from_list("shades", [(place, colour(shade)) for place, shade in scale])


def ink_on(rgba: Any) -> str:
    """Return the colour of text that can be read on a ground."""
    red, green, blue = rgba[:3]
    return role("ink") if 0.299 * red + 0.587 * green + 0.114 * blue > 0.55 else "#ffffff"


# The traces of a figure.


_DASHES: Final = {"dash": "--", "dot": ":", "dashdot": "-."}
_CELL_TEXT: Final = 7.5


def draw_trace(axes: Any, trace: dict[str, Any], order: int) -> Any:
    """Draw ``trace`` at the place ``order`` of its figure; return what a colour bar needs, if it is to have one.

    Raises KeyError for a kind of trace that no plot of the report has.
    """
    return _KINDS[trace["type"]](axes, trace, order + 2)


def _scatter(axes: Any, trace: dict[str, Any], order: int) -> None:
    mode, marker, line = trace["mode"], trace.get("marker", {}), trace.get("line", {})
    x, y = numbers(trace["x"]), numbers(trace["y"])
    shape, hollow = symbol(marker.get("symbol", "circle"))
    shade = colour(marker["color"]) if "markers" in mode else colour(line["color"])
    edge = marker.get("line", {})
    axes.plot(
        x,
        y,
        linestyle=_DASHES.get(line.get("dash", ""), "-") if "lines" in mode else "none",
        linewidth=line.get("width", 1) * POINTS,
        color=colour(line.get("color", shade)),
        marker=shape if "markers" in mode else "none",
        markersize=marker.get("size", 6) * POINTS,
        markerfacecolor="none" if hollow else shade,
        markeredgecolor=shade if hollow or shape in "x|_" else colour(edge.get("color", shade)),
        markeredgewidth=edge.get("width", 1.4 if shape in "x|_" else 0) * POINTS,
        alpha=trace.get("opacity", marker.get("opacity", 1)),
        solid_capstyle="butt",
        zorder=order,
    )
    for key, direction in (("error_x", "xerr"), ("error_y", "yerr")):
        if bars := trace.get(key):
            _error_bars(axes, x, y, bars, direction, order)


def _error_bars(axes: Any, x: Any, y: Any, bars: dict[str, Any], direction: str, order: int) -> None:
    axes.errorbar(
        x,
        y,
        **{direction: np.array([bars["arrayminus"], bars["array"]])},
        fmt="none",
        ecolor=colour(bars["color"]),
        elinewidth=bars["thickness"] * POINTS,
        capsize=bars["width"] * POINTS,
        capthick=bars["thickness"] * POINTS,
        zorder=order,
    )


def _heatmap(axes: Any, trace: dict[str, Any], order: int) -> Any:
    z = np.stack([numbers(row) for row in trace["z"]])
    x, y = _edges(trace["x"], z.shape[1]), _edges(trace["y"], z.shape[0])
    mesh = axes.pcolormesh(
        x,
        y,
        np.ma.masked_invalid(z),
        cmap=shades(trace["colorscale"]),
        vmin=trace.get("zmin"),
        vmax=trace.get("zmax"),
        alpha=trace.get("opacity", 1),
        edgecolors=role("card"),
        linewidth=trace.get("xgap", 0) * POINTS,
        zorder=1,
    )
    if trace.get("texttemplate"):
        _cell_texts(axes, trace, z, mesh, (x, y), order)
    return (mesh, trace["colorbar"]) if trace.get("showscale") and "colorbar" in trace else None


def _cell_texts(axes: Any, trace: dict[str, Any], z: Any, mesh: Any, edges: tuple[Any, Any], order: int) -> None:
    across, up = ((bounds[1:] + bounds[:-1]) / 2 for bounds in edges)
    shaded = mesh.cmap(mesh.norm(z))
    for row, column in np.ndindex(z.shape):
        if np.isfinite(z[row, column]):
            axes.text(
                across[column],
                up[row],
                words(str(trace["text"][row][column])),
                ha="center",
                va="center",
                fontsize=_CELL_TEXT,
                color=ink_on(shaded[row, column]),
                zorder=order + 20,
            )


def _edges(values: list[float], cells: int) -> Any:
    bounds = np.array(values, dtype=np.float64)
    if len(bounds) == cells + 1:
        return bounds
    middles = (bounds[1:] + bounds[:-1]) / 2
    return np.concatenate([[2 * bounds[0] - middles[0]], middles, [2 * bounds[-1] - middles[-1]]])


def _contour(axes: Any, trace: dict[str, Any], order: int) -> None:
    z = np.ma.masked_invalid(np.stack([numbers(row) for row in trace["z"]]))
    lines = trace["contours"]
    levels = np.arange(lines["start"], lines["end"], lines["size"])
    if len(levels) and z.shape[0] > 1 and z.shape[1] > 1:
        axes.contour(
            trace["x"],
            trace["y"],
            z,
            levels=levels,
            colors=colour(trace["line"]["color"]),
            linewidths=trace["line"]["width"] * POINTS,
            alpha=trace.get("opacity", 1),
            zorder=order,
        )


def _icicle(axes: Any, trace: dict[str, Any], order: int) -> None:
    # Rows of frames from above, each below the one that it is part of; the widest first.
    places = {name: place for place, name in enumerate(trace["ids"])}
    parents = [places.get(parent) for parent in trace["parents"]]
    values = trace["values"]
    whole = max([value for value, parent in zip(values, parents, strict=True) if parent is None], default=0) or 1
    starts, rows = [0.0] * len(values), [0] * len(values)
    used = [0.0] * len(values)
    for place in sorted(range(len(values)), key=lambda place: (_depth(place, parents), -values[place])):
        parent = parents[place]
        if parent is not None:
            rows[place] = rows[parent] + 1
            starts[place] = starts[parent] + used[parent]
            used[parent] += values[place]
        _icicle_frame(axes, trace, place, (starts[place] / whole, rows[place], values[place] / whole), order)
    axes.set_xlim(0, 1)
    axes.set_ylim(min(max(rows, default=0) + 1, trace["maxdepth"]), 0)
    axes.set_axis_off()


def _depth(place: int, parents: Sequence[int | None]) -> int:
    row, at = 0, parents[place]
    while at is not None:
        row, at = row + 1, parents[at]
    return row


def _icicle_frame(axes: Any, trace: dict[str, Any], place: int, at: tuple[float, int, float], order: int) -> None:
    left, row, width = at
    if row >= trace["maxdepth"]:
        return
    face = colour(trace["marker"]["colors"][place])
    axes.add_patch(
        Rectangle((left, row), width, 1, facecolor=face, edgecolor=role("card"), linewidth=0.4, zorder=order)
    )
    label = words(trace["labels"][place])
    if width * _LETTERS_ACROSS > len(label):
        ink = colour(trace["textfont"]["color"][place])
        axes.text(left + 0.003, row + 0.5, label, va="center", fontsize=_CELL_TEXT, color=ink, zorder=order + 20)


def _bar(axes: Any, trace: dict[str, Any], order: int) -> None:
    axes.barh(
        numbers(trace["y"]),
        numbers(trace["x"]),
        height=trace["width"],
        left=numbers(trace["base"]),
        color=colour(trace["marker"]["color"]),
        zorder=order,
    )


_LETTERS_ACROSS: Final = 150
_KINDS: Final = {"bar": _bar, "icicle": _icicle, "scatter": _scatter, "heatmap": _heatmap, "contour": _contour}

"""Traces of plotly's figures drawn with matplotlib: the kinds that the report's plots are made of."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ajuste.report.pictures.style import POINTS, colour, ink_on, numbers, role, shades, symbol, words

_DASHES: Final = {"dash": "--", "dot": ":", "dashdot": "-."}
_CELL_TEXT: Final = 7.5


def draw_trace(axes: Any, trace: dict[str, Any], order: int) -> Any:
    """Draw ``trace`` at the place ``order`` of its figure; what a colour bar needs, if it is to have one.

    Raises KeyError for a kind of trace that no plot of the report has.
    """
    return _KINDS[trace["type"]](axes, trace, order + 2)


def _scatter(axes: Any, trace: dict[str, Any], order: int) -> None:
    mode, marker, line = trace["mode"], trace.get("marker", {}), trace.get("line", {})
    x, y = numbers(trace["x"]), numbers(trace["y"])
    shape, hollow = symbol(marker.get("symbol", "circle"))
    own = colour(marker["color"]) if "markers" in mode else colour(line["color"])
    edge = marker.get("line", {})
    axes.plot(
        x,
        y,
        linestyle=_DASHES.get(line.get("dash", ""), "-") if "lines" in mode else "none",
        linewidth=line.get("width", 1) * POINTS,
        color=colour(line.get("color", own)),
        marker=shape if "markers" in mode else "none",
        markersize=marker.get("size", 6) * POINTS,
        markerfacecolor="none" if hollow else own,
        markeredgecolor=own if hollow or shape in "x|_" else colour(edge.get("color", own)),
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
    across, up = ((one[1:] + one[:-1]) / 2 for one in edges)
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
    found = np.array(values, dtype=np.float64)
    if len(found) == cells + 1:
        return found
    middles = (found[1:] + found[:-1]) / 2
    return np.concatenate([[2 * found[0] - middles[0]], middles, [2 * found[-1] - middles[-1]]])


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


_KINDS: Final = {"scatter": _scatter, "heatmap": _heatmap, "contour": _contour}

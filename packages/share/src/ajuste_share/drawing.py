"""Plots of the report drawn with matplotlib: the same figures that plotly draws in the browser."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, MultipleLocator, NullFormatter
from matplotlib.transforms import blended_transform_factory
from numpy.typing import NDArray

from ajuste.machine.files import make_directory, open_named
from ajuste.model.error import RequestError
from ajuste.report.document import Report, saved_pictures
from ajuste.report.plots.plot import ROLES, LegendEntry, Plot

# Traces of plotly's figures drawn with matplotlib: the kinds that the report's plots are made of.


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

_DASHES: Final = {"dash": "--", "dot": ":", "dashdot": "-."}
_CELL_TEXT: Final = 7.5
_LETTERS_ACROSS: Final = 150
_INCH: Final = 96  # CSS pixels
_WIDTHS: Final = {True: 1000, False: 620}  # CSS pixels, of a wide plot and others
_BAR_ROOM: Final = 40
_LETTERS: Final = 13.0  # legend entries, in letters an inch
PictureFormat = Literal["svg", "png"]
_DPI: Final = 192
Frame = tuple[float, float, float, float]


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


_KINDS: Final = {"bar": _bar, "icicle": _icicle, "scatter": _scatter, "heatmap": _heatmap, "contour": _contour}


def write_pictures(report: Report, directory: Path, form: PictureFormat) -> tuple[Path, ...]:
    """Draw every plot into ``directory``, made if missing; return the files in the report's order.

    Raises RequestError where it cannot be written.
    """
    written = []
    try:
        make_directory(directory, 0o755)
        with mpl.rc_context(RC):
            for picture in saved_pictures(report):
                path = directory / f"{picture.stem}.{form}"
                about = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
                with open_named(path) as file:
                    draw(picture.plot, picture.title).savefig(
                        file, format=form, dpi=_DPI, bbox_inches="tight", pad_inches=0.15, metadata=about
                    )
                written.append(path)
    except OSError as error:
        raise RequestError(
            f"{directory}: {error.strerror or error}", hint="give a directory that you can write to"
        ) from error
    return tuple(written)


write_svg = partial(write_pictures, form="svg")
write_png = partial(write_pictures, form="png")


def draw(plot: Plot, title: str) -> Figure:
    """Return the picture of ``plot`` in the colours of the light theme, with ``title`` and legend."""
    layout, traces = plot.figure["layout"], plot.figure["data"]
    width, height = _WIDTHS[plot.wide] / _INCH, plot.height / _INCH
    figure = Figure(figsize=(width, height), facecolor=role("card"))
    axes = _axes(figure, layout, traces)
    top = 1.0
    for order, trace in enumerate(traces):
        panel = axes[trace.get("xaxis", "x"), trace.get("yaxis", "y")]
        if bar := draw_trace(panel, trace, order):
            _colour_bar(figure, panel, *bar)
            top = 1 + _BAR_ROOM / plot.height
    for key, panel in axes.items():
        bottom = _frame(layout, *key)[1]
        # No other axes of the same x axis are below.
        lowest = all(_frame(layout, *other)[1] >= bottom for other in axes if other[0] == key[0])
        _set_up(panel, layout.get(_long(key[0]), {}), "x", alone=lowest)
        _set_up(panel, layout.get(_long(key[1]), {}), "y", alone=True)
    for shape in layout.get("shapes", ()):
        _draw_shape(figure, axes, shape)
    for note in layout.get("annotations", ()):
        figure.text(note["x"], note["y"], words(note["text"]), va="bottom", fontsize=9, color=role("ink"))
        top = max(top, 1 + 40 / plot.height)
    _head(figure, plot, title, top)
    return figure


def _long(axis: str) -> str:
    # `x2` as `xaxis2`.
    return f"{axis[0]}axis{axis[1:]}"


def _axes(figure: Figure, layout: dict[str, Any], traces: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    # One for each pair of axes that a trace is drawn on; those of one x axis share it.
    pairs = dict.fromkeys((trace.get("xaxis", "x"), trace.get("yaxis", "y")) for trace in traces)
    made: dict[tuple[str, str], Any] = {}
    for x, y in pairs or {("x", "y"): None}:
        panel = figure.add_axes(_frame(layout, x, y))
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
        for side in ("left", "bottom"):
            panel.spines[side].set_color(role("line"))
        panel.set_axisbelow(True)
        panel.set_facecolor("none")
        same_x = next((other for (ox, _), other in made.items() if ox == x), None)
        same_y = next((other for (_, oy), other in made.items() if oy == y), None)
        if same_x is not None:
            panel.sharex(same_x)
        if same_y is not None:
            panel.sharey(same_y)
        made[x, y] = panel
    return made


def _frame(layout: dict[str, Any], x: str, y: str) -> Frame:
    (left, right), (bottom, top) = (layout.get(_long(axis), {}).get("domain", (0, 1)) for axis in (x, y))
    return left, bottom, right - left, top - bottom


def _set_up(axes: Any, axis: dict[str, Any], which: str, *, alone: bool) -> None:
    # Scale, range, ticks and title; without texts where another one below has them (not `alone`).
    drawn_axis = axes.xaxis if which == "x" else axes.yaxis
    logarithmic = axis.get("type") == "log"
    if logarithmic:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    limits = axis.get("range")
    if limits is not None:
        ends = [10.0**end for end in limits] if logarithmic else limits
        (axes.set_xlim if which == "x" else axes.set_ylim)(*ends)
    elif axis.get("rangemode") == "tozero" and not logarithmic:
        low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
        (axes.set_xlim if which == "x" else axes.set_ylim)(min(0, low), max(0, high))
    _ticks(drawn_axis, axis, logarithmic=logarithmic)
    bare = axis.get("ticks") == ""
    axes.tick_params(
        axis=which, colors=role("line"), labelcolor=role("muted"), labelsize=8.5, length=0 if bare else 3, which="both"
    )
    labelled = alone and axis.get("showticklabels", True)
    axes.tick_params(axis=which, **{"labelbottom" if which == "x" else "labelleft": labelled}, which="both")
    if axis.get("showgrid", True):
        axes.grid(axis=which, color=role("grid"), linewidth=0.7)
    if axis.get("showline") is False:
        axes.spines["bottom" if which == "x" else "left"].set_visible(False)
    if alone and (title := axis.get("title", {}).get("text")):
        drawn_axis.set_label_text(words(title), color=role("muted"), fontsize=9)


def _ticks(drawn_axis: Any, axis: dict[str, Any], *, logarithmic: bool) -> None:
    if "tickvals" in axis:
        drawn_axis.set_ticks(list(axis["tickvals"]), [words(text) for text in axis["ticktext"]])
        drawn_axis.set_ticks([], minor=True)
        return
    before, after = axis.get("tickprefix", ""), axis.get("ticksuffix", "")
    if logarithmic:
        drawn_axis.set_major_locator(LogLocator(subs=(1.0,) if axis.get("dtick") == 1 else (1.0, 2.0, 5.0)))
        drawn_axis.set_minor_formatter(NullFormatter())
    elif isinstance(axis.get("dtick"), int | float):
        drawn_axis.set_major_locator(MultipleLocator(axis["dtick"], offset=axis.get("tick0", 0)))
    else:
        drawn_axis.set_major_locator(MaxNLocator(axis.get("nticks", 6)))
    drawn_axis.set_major_formatter(FuncFormatter(lambda value, _: f"{before}{_figure(value)}{after}"))


def _figure(value: float) -> str:
    if value and (abs(value) >= 1e7 or abs(value) < 1e-4):
        return f"{value:.3g}".replace("-", "−")
    text = f"{value:,.6f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text.replace("-", "−")


def _colour_bar(figure: Figure, axes: Any, mesh: Any, bar: dict[str, Any]) -> None:
    box = axes.get_position()
    height = figure.get_figheight() * _INCH
    made = figure.colorbar(
        mesh,
        cax=figure.add_axes((box.x0, box.y1 + 8 / height, box.width, bar["thickness"] / height)),
        orientation="horizontal",
    )
    made.outline.set_visible(False)
    made.ax.xaxis.set_ticks_position("top")
    _ticks(made.ax.xaxis, bar, logarithmic=False)
    made.ax.tick_params(colors=role("line"), labelcolor=role("muted"), labelsize=8, length=2)


def _draw_shape(figure: Figure, axes: dict[tuple[str, str], Any], shape: dict[str, Any]) -> None:
    refs = {which: shape.get(f"{which}ref", which) for which in "xy"}
    named = {which: ref.removesuffix(" domain") for which, ref in refs.items()}
    panel = next(
        (a for (x, y), a in axes.items() if named["x"] in (x, "paper") and named["y"] in (y, "paper")),
        next(iter(axes.values())),
    )
    whole = figure.transFigure
    parts = [
        whole if refs[w] == "paper" else panel.transAxes if refs[w].endswith("domain") else panel.transData
        for w in "xy"
    ]
    transform = blended_transform_factory(*parts)
    corners = [shape[key] for key in ("x0", "x1", "y0", "y1")]
    line = shape.get("line", {})
    edge, width = colour(line.get("color", "none")), line.get("width", 0) * POINTS
    if shape["type"] == "rect":
        x0, x1, y0, y1 = corners
        face = colour(shape.get("fillcolor", "none"))
        patch = Rectangle((x0, y0), x1 - x0, y1 - y0, facecolor=face, edgecolor=edge, linewidth=width, zorder=0.5)
        patch.set_transform(transform)
        panel.add_artist(patch)
    else:
        panel.add_artist(Line2D(corners[:2], corners[2:], color=edge, linewidth=width, transform=transform, zorder=0.6))


def _head(figure: Figure, plot: Plot, title: str, top: float) -> None:
    gap = 8 / plot.height
    if plot.legend:
        entries = [_handle(entry) for entry in plot.legend]
        longest = max(len(entry.text) for entry in plot.legend) + 5
        legend = figure.legend(
            handles=entries,
            labels=[entry.text for entry in plot.legend],
            loc="lower left",
            bbox_to_anchor=(0, top),
            ncols=max(1, min(len(entries), math.floor(figure.get_figwidth() * _LETTERS / longest))),
            frameon=False,
            fontsize=8.5,
            labelcolor=role("muted"),
            borderaxespad=0.4,
            title=plot.legend_title or None,
            title_fontsize=8.5,
            alignment="left",
        )
        top = legend.get_window_extent().transformed(figure.transFigure.inverted()).y1
    figure.text(0, top + gap, title, fontsize=10.5, fontweight="bold", color=role("ink"), va="bottom")


def _handle(entry: LegendEntry) -> Line2D | Patch:
    shade = role(entry.role)
    if entry.symbol in ("line", "dash"):
        return Line2D([], [], color=shade, linestyle="--" if entry.symbol == "dash" else "-")
    if entry.symbol in ("area", "band"):
        return Patch(facecolor=shade, edgecolor=role("line"))
    shape, hollow = symbol(entry.symbol)
    return Line2D(
        [], [], linestyle="none", marker=shape, color=shade, markerfacecolor="none" if hollow else shade, markersize=6
    )

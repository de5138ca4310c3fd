"""The plot, and the look that all plots share, with the colours of all pages."""

from __future__ import annotations

import html
import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, TypeAlias

from ajuste.model.wording import visible_line

# The colours of the HTML report, by role, for light and dark.
#
# The series follow Okabe and Ito, "Color Universal Design" (2008), made darker or lighter until they stand out at 3:1
# from the ground they are on; text stands out at 4.5:1 (WCAG 2.2, 1.4.3 and 1.4.11).

Theme = Literal["light", "dark"]

ROLES: Final[dict[str, tuple[str, str]]] = {
    "page": ("#f7f8f9", "#13171b"),
    "card": ("#ffffff", "#1b2026"),
    "ink": ("#1b2127", "#e8ebee"),
    "muted": ("#56616c", "#a1acb7"),
    "line": ("#d9dee3", "#38414a"),
    "grid": ("#e9ecef", "#2a3138"),
    "accent": ("#0b5cad", "#7ab8f5"),
    "band": ("#e3ecf4", "#26323e"),
    "warning-ground": ("#fdf3dc", "#2f2817"),
    "warning-line": ("#d9a520", "#a67c1a"),
    "improves": ("#00694f", "#45c9a3"),
    "worsens": ("#a93c00", "#ff9a62"),
    "differs": ("#0b5cad", "#7ab8f5"),
    "equivalent": ("#56616c", "#a9b4bf"),
    "undecided": ("#7d5a00", "#e5b84d"),
    "improves-ground": ("#dff3ec", "#16332b"),
    "worsens-ground": ("#fbe7dc", "#3a2418"),
    "differs-ground": ("#e1edf9", "#1a2e43"),
    "equivalent-ground": ("#e9edf0", "#2a3138"),
    "undecided-ground": ("#faf0d4", "#332a14"),
    "series-0": ("#1b2127", "#e8ebee"),
    "series-1": ("#0072b2", "#4fa3e0"),
    "series-2": ("#c85200", "#ff8f4d"),
    "series-3": ("#00845f", "#2bc79b"),
    "series-4": ("#b3568a", "#e59cc4"),
    "series-5": ("#a66f00", "#f0b93a"),
    "series-6": ("#2a86bd", "#9fdcff"),
    "series-7": ("#7454a8", "#b79be6"),
    "heat-0": ("#f2f6fa", "#1f272f"),
    "heat-1": ("#c4dbef", "#24415c"),
    "heat-2": ("#7fb2dc", "#2f6c9e"),
    "heat-3": ("#2f7fbf", "#58a3dc"),
    "heat-4": ("#08508f", "#b4dbfb"),
    "fall-1": ("#9cc9ea", "#2c5f86"),
    "fall-2": ("#3f93cc", "#4793cb"),
    "fall-3": ("#08508f", "#a5d5fb"),
    "rise-1": ("#fbc79f", "#7d4a25"),
    "rise-2": ("#e98a45", "#d07a3c"),
    "rise-3": ("#a93c00", "#ffc49c"),
    "still": ("#c3cbd3", "#4d5863"),
    "wave": ("#b3568a", "#e59cc4"),
}

SERIES: Final = 8  # series-0 (the baseline) … series-7
HEATS: Final = 5  # heat-0 … heat-4
SYMBOLS: Final = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "pentagon",
    "hexagon",
    "star",
)


def variable(role: str) -> str:
    """Return the name of a colour in figures and styles; the page's script replaces it by the theme's colour."""
    if role not in ROLES:
        raise KeyError(role)
    return f"var(--{role})"


def declarations(theme: Theme) -> str:
    """Return the roles as CSS custom properties, one a line."""
    column = 0 if theme == "light" else 1
    return "\n".join(f"  --{role}: {colours[column]};" for role, colours in ROLES.items())


_FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', sans-serif"
_CLEAR: Final = "rgba(0,0,0,0)"

Figure: TypeAlias = dict[str, Any]
"""A figure as plotly's JavaScript takes it: ``data`` and ``layout``."""


@dataclass(frozen=True)
class LegendEntry:
    """A mark and its meaning. ``symbol`` is one of plotly's, ``role`` a colour of the palette."""

    text: str
    symbol: str
    role: str


@dataclass(frozen=True)
class Plot:
    """A figure with what a person who cannot see it reads instead.

    ``name`` is unique on a page and safe in an ``id``; ``height`` is in CSS pixels; ``wide`` plots take a whole line.
    """

    name: str
    title: str
    description: str
    figure: Figure
    height: int
    legend: tuple[LegendEntry, ...] = ()
    legend_title: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Mark:
    """Colour and symbol of one series."""

    role: str
    symbol: str

    @property
    def colour(self) -> str:
        return variable(self.role)


def mark(place: int) -> Mark:
    """Return the mark of the series at ``place``; they repeat after ``SERIES``."""
    return Mark(f"series-{place % SERIES}", SYMBOLS[place % len(SYMBOLS)])


def plain(text: str) -> str:
    """Return text as plotly shows it unchanged: plotly reads some HTML in every text."""
    return html.escape(visible_line(text), quote=False)


def plain_lines(text: str, width: int) -> str:
    """Return ``plain`` text, broken into lines of at most ``width`` characters."""
    lines = textwrap.wrap(visible_line(text), width, break_long_words=True, break_on_hyphens=False)
    return "<br>".join(html.escape(line, quote=False) for line in lines)


def figure(traces: list[dict[str, Any]], **layout: Any) -> Figure:
    """Return a figure in the look of the report. ``layout`` is plotly's."""
    return {"data": traces, "layout": {**layout, "template": _template()}}


def scatter(
    mode: str,
    x: Sequence[Any],
    y: Sequence[Any],
    hover: Sequence[str] | str | None = None,
    *,
    hoverinfo: str = "text",
    **look: Any,
) -> dict[str, Any]:
    """Return marks or lines. ``hover`` is the text of each point, or of all; ``look`` is plotly's."""
    hover_keys = {"hoverinfo": "skip"} if hover is None else {"hoverinfo": hoverinfo, "hovertext": hover}
    return {"type": "scatter", "mode": mode, "x": x, "y": y, **look, **hover_keys}


def error_bars(above: Sequence[float], below: Sequence[float], colour: str, **look: Any) -> dict[str, Any]:
    """Return bars from each point so far up and down, or to the right and the left."""
    return {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "color": colour, **look}


def line_at(x: float | None = None, y: float | None = None, *, role: str = "line", **look: Any) -> dict[str, Any]:
    """Return a shape: a line through the whole plot at ``x`` or at ``y``, behind all else."""
    along = {"x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1}
    if x is None:
        along = {"xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y}
    return {"type": "line", **along, "layer": "below", "line": {"color": variable(role), "width": 1, **look}}


def heat_scale(*, strong_below: bool) -> list[list[Any]]:
    """Return colours from the least figure to the largest, the stronger ones where it is better."""
    shades = [variable(f"heat-{place}") for place in range(HEATS)]
    return [[place / (HEATS - 1), shade] for place, shade in enumerate(reversed(shades) if strong_below else shades)]


def figure_json(drawn: Figure) -> str:
    """Return JSON with ``null`` for NaN and infinity: plotly draws nothing there. Figures have twelve digits."""
    return json.dumps(_numbers(drawn), allow_nan=False, separators=(",", ":"))


def _numbers(value: Any) -> Any:
    if isinstance(value, float):  # Most of it is.
        return float(f"{value:.12g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_numbers(item) for item in value]
    return value


def level_axis(labels: list[str], width: int = 18) -> dict[str, Any]:
    """Return an axis whose ticks at 0, 1, 2 … are ``labels``, in full."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(labels))),
        "ticktext": [plain_lines(label, width) for label in labels],
        "range": [-0.6, len(labels) - 0.4],
    }


def spaced(places: Sequence[float], apart: float) -> frozenset[float]:
    """Return the ascending ``places`` that can have a label: at least ``apart`` from each other, the last always."""
    labelled: list[float] = []
    for place in places[:-1]:
        if (not labelled or place - labelled[-1] >= apart) and places[-1] - place >= apart:
            labelled.append(place)
    return frozenset((*labelled, *places[-1:]))


@cache
def _template() -> dict[str, Any]:
    axis = {
        "gridcolor": variable("grid"),
        "linecolor": variable("line"),
        "tickcolor": variable("line"),
        "tickfont": {"color": variable("muted"), "size": 12},
        "title": {"font": {"color": variable("muted"), "size": 12}, "standoff": 8},
        "showline": True,
        "ticks": "outside",
        "ticklen": 4,
        "zeroline": False,
        "automargin": True,
        "exponentformat": "none",
        "separatethousands": True,
    }
    return {
        "layout": {
            "font": {"family": _FONT, "size": 13, "color": variable("ink")},
            "paper_bgcolor": _CLEAR,
            "plot_bgcolor": _CLEAR,
            "margin": {"l": 12, "r": 14, "t": 10, "b": 12},
            "showlegend": False,
            "hovermode": "closest",
            "dragmode": False,
            "hoverlabel": {
                "bgcolor": variable("card"),
                "bordercolor": variable("line"),
                "font": {"family": _FONT, "size": 13, "color": variable("ink")},
                "align": "left",
                "namelength": 0,
            },
            "xaxis": axis,
            "yaxis": axis,
        }
    }

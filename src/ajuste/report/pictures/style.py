"""Colours, symbols and text of plotly's figures as matplotlib has them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import NDArray

from ajuste.report.palette import ROLES

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
    """A colour of the light theme."""
    return ROLES[name][0]


def colour(value: str) -> str:
    """``var(--ink)`` as that colour."""
    found = _VARIABLE.fullmatch(value)
    return role(found[1]) if found else value


def words(text: str) -> str:
    """Plotly's text without its tags."""
    return html.unescape(_TAG.sub("", text.replace("<br>", "\n")))


def symbol(name: str) -> tuple[str, bool]:
    """The marker, and whether it is hollow."""
    return _SYMBOLS.get(name.removesuffix("-open"), "o"), name.endswith("-open")


def numbers(values: Iterable[float | None]) -> NDArray[np.float64]:
    """What is missing as NaN."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def shades(scale: Sequence[tuple[float, str]]) -> LinearSegmentedColormap:
    return LinearSegmentedColormap.from_list("shades", [(place, colour(shade)) for place, shade in scale])


def ink_on(rgba: Any) -> str:
    """The colour of text that can be read on a ground."""
    red, green, blue = rgba[:3]
    return role("ink") if 0.299 * red + 0.587 * green + 0.114 * blue > 0.55 else "#ffffff"

"""The axes of a surface as they are drawn: levels where their values are, on a linear or a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Results
from ajuste.model.surface import Axis, Surface, SurfacePoint
from ajuste.report.format import Shown
from ajuste.report.labels import Labels
from ajuste.report.plots.plot import plain, spaced
from ajuste.report.plots.trial_marks import exact
from ajuste.report.visible import visible_line

_NARROWEST: Final = 230  # pixels between the first and the last level
_LETTER: Final = 7.5  # pixels
_LINE: Final = 16  # pixels


@dataclass(frozen=True)
class View:
    """A surface with what is needed to draw it. ``cells`` are its points by the levels along its axes, ``names`` are
    what factors are called where that is not their own name.
    """

    results: Results
    surface: Surface
    metric: Metric
    labels: Labels
    shown: Shown
    cells: dict[tuple[str, ...], SurfacePoint]
    configurations: dict[str, Measured]
    names: Mapping[str, str]

    def factor(self, name: str) -> str:
        return self.names.get(name) or visible_line(name)

    @property
    def unit(self) -> str:
        return f", in\u00a0{self.shown.unit}" if self.shown.unit else ""

    def name(self, configuration: str) -> str:
        """The levels of a configuration along the axes."""
        levels = self.configurations[configuration].levels
        return ", ".join(self.labels.level(axis.factor, levels[axis.factor]) for axis in self.surface.axes)

    def bounds(self, point: SurfacePoint) -> str:
        """The point's interval in words."""
        if point.low is None or point.high is None:
            return "no interval yet"
        return f"{self.shown.text(point.low)} … {self.shown.with_unit(point.high)}"


def view_of(results: Results, surface: Surface, labels: Labels, names: Mapping[str, str]) -> View:
    """``surface``, of ``results``, made ready to be drawn."""
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
        shown=exact(metric, [point.value for point in surface.points]),
        cells=cells,
        configurations=configurations,
        names=names,
    )


def places(axis: Axis) -> list[float]:
    """Where the levels stand: plotly's own logarithmic axes know no cells of unequal width."""
    return [math.log10(value) for value in axis.values] if axis.scale == "log" else list(axis.values)


def edges(axis: Axis) -> list[float]:
    """The bounds of the levels' cells: half way to the neighbours, and as far at the ends."""
    at = places(axis)
    middles = [(one + two) / 2 for one, two in pairwise(at)]
    return [2 * at[0] - middles[0], *middles, 2 * at[-1] - middles[-1]]


def level_ticks(axis: Axis, labels: Labels, *, upright: bool = False) -> dict[str, Any]:
    """Ticks at all levels; a label only where it does not run into the one before or into the last, on a screen as
    narrow as a telephone's. A unit that all levels have stands in the title.
    """
    at = places(axis)
    texts, unit = _without_unit([labels.level(axis.factor, level) for level in axis.levels])
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


def _without_unit(texts: list[str]) -> tuple[list[str], str]:
    """``1 ms``, ``4 ms`` as ``1``, ``4`` and ``ms``; as they are where their units differ."""
    parts = [text.rpartition(" ") for text in texts]
    units = {unit for _, _, unit in parts}
    if len(units) == 1 and all(number for number, _, _ in parts):
        return [number for number, _, _ in parts], units.pop()
    return texts, ""

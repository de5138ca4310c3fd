"""Where a search has looked: what its model expects over two factors, and the points that were tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ajuste.analysis.wording import change
from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.tuning import ExpectedMap, Tuning
from ajuste.report.labels import Labels
from ajuste.report.palette import variable
from ajuste.report.plots.plot import LegendEntry, Plot, figure, level_axis, plain
from ajuste.report.plots.search_history import shown

_SHADES: Final = ("heat-0", "heat-1", "heat-2", "heat-3", "heat-4")
_MOST_TICKS: Final = 10


class Marker(NamedTuple):
    """``fill`` and ``edge`` are roles of the palette."""

    symbol: str
    size: int
    fill: str
    edge: str


_TRIED: Final = Marker("circle", 8, "card", "ink")
_CHOSEN: Final = Marker("diamond", 13, "series-2", "card")


def search_map(results: Results, tuning: Tuning, metric: Metric, labels: Labels, name: str) -> Plot | None:
    """``None`` where no two factors have an order. A point with other levels of further factors lies where its two
    levels are.
    """
    expected = tuning.expected
    if expected is None:
        return None
    ratio = tuning.scales[0] == "ratio"
    shades = [variable(role) for role in (_SHADES if metric.direction == "higher" else reversed(_SHADES))]
    traces: list[dict[str, Any]] = [
        {
            "type": "heatmap",
            "z": [[shown(value, ratio) for value in line] for line in expected.expected],
            "hoverinfo": "text",
            "hovertext": _hovers(expected, tuning, metric, labels),
            "colorscale": [[place / (len(shades) - 1), shade] for place, shade in enumerate(shades)],
            "showscale": False,
        },
        _markers(_places(results, expected, {step.configuration for step in tuning.steps}), _TRIED, "{}"),
        _markers(_places(results, expected, set(tuning.chosen)), _CHOSEN, "<b>{}</b>"),
    ]
    return Plot(
        name=name,
        title="What the model expects over two settings, and what was tried; stronger is better",
        description=f"{metric.title} as a model expects it over {expected.down} (upwards) and {expected.across}, with "
        "what was tried and the choice.",
        figure=figure(
            traces,
            xaxis=_axis(expected.across, expected.across_levels, labels),
            yaxis=_axis(expected.down, expected.down_levels, labels),
        ),
        height=max(320, 60 + 20 * len(expected.down_levels)),
        legend=(LegendEntry("tried", "circle", "ink"), LegendEntry("checked", "diamond", "series-2")),
        wide=True,
    )


def _axis(factor: str, levels: tuple[str, ...], labels: Labels) -> dict[str, Any]:
    axis = level_axis([labels.level(factor, level) for level in levels], width=10)
    step = -(-len(levels) // _MOST_TICKS)
    return {
        **axis,
        "tickvals": axis["tickvals"][::step],
        "ticktext": axis["ticktext"][::step],
        "range": [-0.5, len(levels) - 0.5],
        "title": {"text": plain(factor)},
        "showgrid": False,
    }


def _hovers(expected: ExpectedMap, tuning: Tuning, metric: Metric, labels: Labels) -> list[list[str]]:
    return [
        [
            f"{plain(labels.level(expected.down, down))}, {plain(labels.level(expected.across, across))}<br>"
            f"expected: {plain(change(value, tuning.scales[0], metric.unit))}"
            for across, value in zip(expected.across_levels, line, strict=True)
        ]
        for down, line in zip(expected.down_levels, expected.expected, strict=True)
    ]


def _places(results: Results, expected: ExpectedMap, names: set[str]) -> list[tuple[int, int, str]]:
    """Column and row of those of ``names`` whose levels are on the map."""
    found = []
    for one in results.configurations:
        down, across = one.levels.get(expected.down), one.levels.get(expected.across)
        if one.name in names and down in expected.down_levels and across in expected.across_levels:
            place = (expected.across_levels.index(across), expected.down_levels.index(down))
            found.append((*place, one.name))
    return found


def _markers(places: Sequence[tuple[int, int, str]], marker: Marker, name: str) -> dict[str, Any]:
    """``name`` has a place for the configuration's."""
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [place[0] for place in places],
        "y": [place[1] for place in places],
        "marker": {
            "symbol": marker.symbol,
            "size": marker.size,
            "color": variable(marker.fill),
            "line": {"width": 1.5, "color": variable(marker.edge)},
        },
        "hoverinfo": "text",
        "hovertext": [name.format(plain(place[2])) for place in places],
    }

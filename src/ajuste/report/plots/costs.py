"""Where the instructions of two trials differ: their call trees, one over the other, as a differential flame graph."""

from __future__ import annotations

from typing import Final

from ajuste.model.cost import ROLES, CostComparison, CostGraph
from ajuste.report.format import number, signed
from ajuste.report.palette import variable
from ajuste.report.plots.plot import LegendEntry, Plot, figure, plain

_ROW: Final = 21
_MOST_ROWS: Final = 30
"""CSS pixels of a frame, and so many frames at most are shown one below the other."""
_SEEN: Final = 300
"""Rows end where no frame is one part in so many any more; a click on a frame shows those below it."""
_LEGEND: Final = (
    LegendEntry("fewer by half or more", "square", "fall-3"),
    LegendEntry("fewer by a tenth", "square", "fall-2"),
    LegendEntry("fewer", "square", "fall-1"),
    LegendEntry("within 1 %", "square", "still"),
    LegendEntry("more", "square", "rise-1"),
    LegendEntry("more by a tenth", "square", "rise-2"),
    LegendEntry("more by half or more", "square", "rise-3"),
)
_STEPS: Final = ((0.5, 3), (0.1, 2), (0.01, 1))
"""From which part of the greater figure a difference has which colour."""


def costs_plots(costs: CostComparison, called: tuple[str, ...], name: str) -> tuple[Plot, ...]:
    """``called`` are baseline and configuration. What the kernel did has a tree of its own where programs did more."""
    whole = _plot(costs, costs.graph, called, f"{name}-tree", "Call tree of both trials, instructions")
    of_kernel = sum(costs.kernel_graph.baseline) + sum(costs.kernel_graph.own)
    if not 0 < 2 * of_kernel < costs.baseline + costs.own:
        return (whole,)
    title = "What the kernel did in both trials, instructions"
    return whole, _plot(costs, costs.kernel_graph, called, f"{name}-kernel", title)


def _plot(costs: CostComparison, graph: CostGraph, called: tuple[str, ...], name: str, title: str) -> Plot:
    """A frame is as wide as both trials together."""
    wholes = [_wholes(graph, trial) for trial in (graph.baseline, graph.own)]
    depths = _depths(graph)
    shades = [_shade(before, own) for before, own in zip(*wholes, strict=True)]
    values = [before + own for before, own in zip(*wholes, strict=True)]
    rows = min(_MOST_ROWS, 1 + max(d for d, value in zip(depths, values, strict=True) if _SEEN * value >= values[0]))
    labels = [plain(_label(graph, place, depths[place])) for place in range(len(graph.parents))]
    both = plain(called[0]), plain(called[1])
    drawn = {
        "type": "icicle",
        "ids": [str(place) for place in range(len(labels))],
        "labels": labels,
        "parents": ["" if parent < 0 else str(parent) for parent in graph.parents],
        "values": values,
        "branchvalues": "total",
        "maxdepth": rows,
        "tiling": {"orientation": "v", "pad": 1},
        "pathbar": {"visible": False},
        "marker": {"colors": [variable(shade) for shade in shades], "line": {"width": 0}},
        "textinfo": "label",
        "textposition": "middle left",
        "textfont": {"color": [variable("card" if shade.endswith("3") else "ink") for shade in shades], "size": 11},
        "hoverinfo": "text",
        "hovertext": [_hover(label, both, before, own) for label, before, own in zip(labels, *wholes, strict=True)],
    }
    return Plot(
        name=name,
        title=title,
        description=_description(costs, called),
        figure=figure([drawn], uniformtext={"minsize": 10, "mode": "hide"}, margin={"l": 0, "r": 0, "t": 4, "b": 4}),
        height=20 + _ROW * rows,
        legend=_LEGEND,
        legend_title=f"Instructions under {called[1]}, compared with {called[0]}",
        wide=True,
    )


def _wholes(graph: CostGraph, itself: tuple[int, ...]) -> list[int]:
    """Of each frame with all below it."""
    found = list(itself)
    for place in range(len(found) - 1, 0, -1):
        found[graph.parents[place]] += found[place]
    return found


def _depths(graph: CostGraph) -> list[int]:
    found: list[int] = []
    for parent in graph.parents:
        found.append(found[parent] + 1 if parent >= 0 else 0)
    return found


def _shade(before: int, own: int) -> str:
    share = (own - before) / max(before, own, 1)
    step = next((step for least, step in _STEPS if abs(share) >= least), 0)
    return f"{'rise' if share > 0 else 'fall'}-{step}" if step else "still"


def _label(graph: CostGraph, place: int, depth: int) -> str:
    name = graph.names[graph.labels[place]]
    if depth == 0:
        return "all tasks"
    if depth == 1:
        return ROLES.get(name, "others")
    return name or "others"


def _hover(label: str, called: tuple[str, str], before: int, own: int) -> str:
    """Of texts that are plain already."""
    figures = f"{called[0]}: {number(before, 0)}<br>{called[1]}: {number(own, 0)}"
    return f"<b>{label}</b><br>{figures}<br>difference: {signed(own - before, 0)} instructions"


def _description(costs: CostComparison, called: tuple[str, ...]) -> str:
    rows = costs.functions[:3]
    most = "; ".join(f"{row.name} {number(row.baseline, 0)} → {number(row.own, 0)}" for row in rows)
    totals = " and ".join(number(total, 0) for total in (costs.baseline, costs.own))
    return f"Call tree of {called[0]} and {called[1]}: {totals} instructions. " + (
        f"Greatest differences: {most}." if most else "No function differs."
    )

"""The trials of a search in the order in which they were made, and the best so far."""

from __future__ import annotations

from typing import Any, Final

from ajuste.analysis.wording import change
from ajuste.model.metric import Metric
from ajuste.model.tuning import Phase, SearchStep, Tuning
from ajuste.report.palette import variable
from ajuste.report.plots.plot import LegendEntry, Plot, figure, plain

LOOKS: Final[dict[Phase, tuple[str, str, str]]] = {
    "explore": ("explored", "circle", "series-0"),
    "replicate": ("replicated", "square", "series-1"),
    "check": ("checked in fresh blocks", "diamond", "series-2"),
}
"""How the trials of each phase are called and marked."""


def history_plot(tuning: Tuning, metric: Metric, name: str) -> Plot | None:
    """Changes of the first objective against the baseline of the same block; ``None`` without any trial."""
    if not tuning.steps:
        return None
    ratio = tuning.scales[0] == "ratio"
    places = {phase: [n for n, step in enumerate(tuning.steps) if step.phase == phase] for phase in LOOKS}
    traces = [_best(tuning, metric, ratio)]
    traces += [_marks(tuning, metric, phase, places[phase], ratio) for phase in LOOKS if places[phase]]
    unit = "%" if ratio else metric.unit
    zero = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 0, "y1": 0, "layer": "below"}
    return Plot(
        name=name,
        title=f"{metric.title}, change from the baseline, trial by trial{f', in {unit}' if unit else ''}",
        description=f"{metric.title} of every trial against the baseline of its block, and the best so far.",
        figure=figure(
            traces,
            xaxis={"title": {"text": "trial beside the baseline"}},
            shapes=[{**zero, "line": {"color": variable("line"), "width": 1}}],
        ),
        height=300,
        legend=(
            *(LegendEntry(said, symbol, role) for phase, (said, symbol, role) in LOOKS.items() if places[phase]),
            LegendEntry("best single trial so far", "line", "muted"),
        ),
        wide=True,
    )


def shown(value: float, ratio: bool) -> float:
    """As it is drawn: a ratio in percent of change."""
    return 100 * (value - 1) if ratio else value


def _marks(tuning: Tuning, metric: Metric, phase: Phase, places: list[int], ratio: bool) -> dict[str, Any]:
    _, symbol, role = LOOKS[phase]
    own = [tuning.steps[place] for place in places]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [place + 1 for place in places],
        "y": [shown(step.changes[0], ratio) for step in own],
        "marker": {
            "symbol": [symbol if step.allowed else f"{symbol}-open" for step in own],
            "size": 7,
            "color": variable(role),
        },
        "hoverinfo": "text",
        "hovertext": [_hover(tuning, step, metric) for step in own],
    }


def _hover(tuning: Tuning, step: SearchStep, metric: Metric) -> str:
    said = change(step.changes[0], tuning.scales[0], metric.unit)
    breaks = "" if step.allowed else "<br>breaks a constraint"
    return f"<b>{plain(step.configuration)}</b><br>block {step.block}: {plain(said)}{breaks}"


def _best(tuning: Tuning, metric: Metric, ratio: bool) -> dict[str, Any]:
    better = max if metric.direction == "higher" else min
    best: list[float | None] = []
    for step in tuning.steps:
        known = best[-1] if best else None
        if step.allowed and step.phase != "check":
            known = step.changes[0] if known is None else better(known, step.changes[0])
        best.append(known)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(range(1, len(best) + 1)),
        "y": [None if value is None else shown(value, ratio) for value in best],
        "line": {"color": variable("muted"), "width": 1.5, "shape": "hv"},
        "hoverinfo": "skip",
    }

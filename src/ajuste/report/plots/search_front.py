"""Two objectives of a search: what was tried, and the front that was checked, with intervals."""

from __future__ import annotations

from typing import Any

from ajuste.analysis.wording import change
from ajuste.model.metric import Metric, Scale
from ajuste.model.results import Results
from ajuste.model.tuning import Tuning
from ajuste.model.verdict import Verdict
from ajuste.report.palette import variable
from ajuste.report.plots.plot import LegendEntry, Plot, figure, plain
from ajuste.report.plots.search_history import shown


def front_plot(results: Results, tuning: Tuning, metrics: tuple[Metric, ...], name: str) -> Plot | None:
    """Changes against the baseline on the first two objectives; ``None`` with only one."""
    if len(metrics) < 2 or not tuning.steps:
        return None
    ratios = [scale == "ratio" for scale in tuning.scales]
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [shown(step.changes[0], ratios[0]) for step in tuning.steps],
            "y": [shown(step.changes[1], ratios[1]) for step in tuning.steps],
            "marker": {"symbol": "circle-open", "size": 7, "color": variable("muted")},
            "hoverinfo": "text",
            "hovertext": [f"{plain(step.configuration)}, block {step.block}" for step in tuning.steps],
        }
    ]
    checked = [found for one in tuning.chosen if (found := _checked(results, one, metrics, tuning.scales))]
    if checked:
        traces.append(_marks(checked, ratios, metrics))
    units = ["%" if ratio else metric.unit for ratio, metric in zip(ratios, metrics, strict=False)]
    titles = [f"{m.title}{f', in {unit}' if unit else ''}" for m, unit in zip(metrics, units, strict=False)]
    return Plot(
        name=name,
        title="The choice between two objectives: changes from the baseline",
        description=f"{metrics[0].title} against {metrics[1].title} of every trial, and of what was checked with "
        "intervals.",
        figure=figure(traces, xaxis={"title": {"text": plain(titles[0])}}, yaxis={"title": {"text": plain(titles[1])}}),
        height=360,
        legend=(
            LegendEntry("single trials", "circle", "muted"),
            LegendEntry("checked, with intervals", "diamond", "improves"),
        ),
        wide=True,
    )


def _checked(
    results: Results, configuration: str, metrics: tuple[Metric, ...], scales: tuple[Scale, ...]
) -> tuple[Verdict, Verdict] | None:
    own = {one.metric: one for one in results.verdicts if one.configuration == configuration}
    pair = [own.get(metric.name) for metric in metrics[:2]]
    first, second = pair
    if first is None or second is None or (first.scale, second.scale) != scales[:2]:
        return None
    return (first, second) if first.estimate is not None and second.estimate is not None else None


def _marks(checked: list[tuple[Verdict, Verdict]], ratios: list[bool], metrics: tuple[Metric, ...]) -> dict[str, Any]:
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "marker": {"symbol": "diamond", "size": 11, "color": variable("improves")},
        "hoverinfo": "text",
        "hovertext": [
            f"<b>{plain(one.configuration)}</b><br>{plain(change(one.estimate, one.scale, metrics[0].unit))}, "
            f"{plain(change(two.estimate, two.scale, metrics[1].unit))}"
            for one, two in checked
        ],
    }
    for axis, place in (("x", 0), ("y", 1)):
        own = [pair[place] for pair in checked]
        middles = [shown(one.estimate or 0.0, ratios[place]) for one in own]
        highs = [_far(one.high, middle, ratios[place]) for one, middle in zip(own, middles, strict=True)]
        lows = [-_far(one.low, middle, ratios[place]) for one, middle in zip(own, middles, strict=True)]
        trace[axis] = middles
        trace[f"error_{axis}"] = {
            "type": "data",
            "symmetric": False,
            "array": highs,
            "arrayminus": lows,
            "color": variable("improves"),
            "thickness": 1.5,
        }
    return trace


def _far(bound: float | None, middle: float, ratio: bool) -> float:
    """From the estimate to a bound; nothing where it is not known."""
    return 0.0 if bound is None else shown(bound, ratio) - middle

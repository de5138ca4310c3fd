"""Effects of factors as a Pareto chart: the largest on top, with intervals, and the zone of what does not matter."""

from __future__ import annotations

from typing import Any, Final

from ajuste.model.metric import Metric, Scale
from ajuste.model.results import Results
from ajuste.model.verdict import FactorEffect
from ajuste.report.effect import effect_style, known
from ajuste.report.factor_effects import effect_name, effect_size, effects_of
from ajuste.report.labels import Labels
from ajuste.report.palette import variable
from ajuste.report.plots.forest import SYMBOLS, Axis, axis_of, in_words, neutral, x_axis, zone_shapes
from ajuste.report.plots.plot import LegendEntry, Plot, figure, level_axis, plain, plain_lines
from ajuste.report.verdict_words import effect_band, tally, verdict_text

_MOST: Final = 30  # bars, of the largest effects
_LABEL_WIDTH: Final = 34  # characters
_LINE_HEIGHT: Final = 16
_FEWEST: Final = 3


def pareto_plots(results: Results, metric: Metric, labels: Labels, name: str) -> tuple[Plot, ...]:
    """A chart for each scale among the effects on ``metric``; nothing for fewer than three effects."""
    by_scale: dict[Scale, list[FactorEffect]] = {}
    for effect in effects_of(results, metric.name):
        if known(effect.estimate) is not None:
            by_scale.setdefault(effect.scale, []).append(effect)
    return tuple(
        _plot(results, metric, sorted(effects, key=effect_size, reverse=True)[:_MOST], labels, f"{name}-{scale}")
        for scale, effects in by_scale.items()
        if len(effects) >= _FEWEST
    )


def _plot(results: Results, metric: Metric, effects: list[FactorEffect], labels: Labels, name: str) -> Plot:
    style = effect_style(effects, metric.unit)[effects[0].scale]
    axis = axis_of(results, metric, effects, style)
    traces: list[dict[str, Any]] = []
    for place, effect in enumerate(effects):
        traces += _row(len(effects) - 1 - place, effect, axis, labels, results)
    names = [effect_name(effect, labels) for effect in reversed(effects)]
    lines = max(plain_lines(name, _LABEL_WIDTH).count("<br>") + 1 for name in names)
    said = tuple(LegendEntry(word, SYMBOLS[word], word) for word, _ in tally(effects))
    band = f"too small to matter ({effect_band(results.smallest_effect)})"
    return Plot(
        name=name,
        title=f"Effects of the factors by size{in_words(style)}",
        description=f"{metric.title}: the effect of each factor, averaged over the others, from the largest to the "
        f"smallest, with {100 * results.level:g} % intervals for all together; the band is too small to matter.",
        figure=figure(
            traces,
            xaxis=x_axis(axis, metric),
            yaxis=level_axis(names, width=_LABEL_WIDTH),
            shapes=zone_shapes(axis),
        ),
        height=max(260, 70 + (10 + _LINE_HEIGHT * lines) * len(effects)),
        legend=(*said, LegendEntry(band, "band", "band")),
    )


def _row(height: int, effect: FactorEffect, axis: Axis, labels: Labels, results: Results) -> list[dict[str, Any]]:
    estimate = known(effect.estimate)
    if estimate is None:
        return []
    text = (
        f"<b>{plain_lines(effect_name(effect, labels), 40)}</b><br>{plain(axis.style.estimate(effect))} "
        f"({plain(axis.style.interval(effect))})<br>{plain(verdict_text(effect, results.smallest_effect))}"
        f"<br>{plain_lines(effect.reason, 48)}"
    )
    low = axis.low if (bound := known(effect.low)) is None else max(axis.low, axis.place(bound))
    high = axis.high if (bound := known(effect.high)) is None else min(axis.high, axis.place(bound))
    at = axis.place(estimate)
    return [
        _line(axis.place(neutral(axis.style)), at, height, effect.verdict, 12, 0.35, text),
        _line(low, high, height, effect.verdict, 2, 1.0, text),
        {
            "type": "scatter",
            "mode": "markers",
            "x": [at],
            "y": [height],
            "marker": {"symbol": SYMBOLS[effect.verdict], "size": 9, "color": variable(effect.verdict)},
            "hoverinfo": "text",
            "hovertext": [text],
        },
    ]


def _line(begin: float, end: float, height: int, role: str, width: int, opacity: float, text: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [begin, end],
        "y": [height, height],
        "line": {"color": variable(role), "width": width},
        "opacity": opacity,
        "hoverinfo": "text",
        "hovertext": [text, text],
    }

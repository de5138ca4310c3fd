"""Effects of factors as a Pareto chart: the largest on top, with intervals and the zone of negligible effects."""

from __future__ import annotations

from typing import Any, Final

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.verdict import CELLS, EFFECTS, FactorCell, FactorEffect
from ajuste.model.wording import visible_line
from ajuste.report.format import Labels, NumberFormat, common_format, in_unit
from ajuste.report.plots.forest import (
    SYMBOLS,
    EffectAxis,
    by_scale,
    effect_axis,
    in_words,
    neutral,
    words_legend,
    x_axis,
    zone_shapes,
)
from ajuste.report.plots.plot import (
    SERIES,
    LegendEntry,
    Mark,
    Plot,
    error_bars,
    figure,
    level_axis,
    mark,
    plain,
    plain_lines,
    scatter,
    variable,
)
from ajuste.report.verdicts import EffectStyle, effect_name, known, metric_effects, verdict_text

_MOST: Final = 30  # bars, of the largest effects
_LABEL_WIDTH: Final = 34  # characters
_LINE_HEIGHT: Final = 16
_FEWEST: Final = 3


def pareto_plots(results: Results, metric: Metric, labels: Labels, name: str) -> tuple[Plot, ...]:
    """Return a chart for each scale among the effects on ``metric``; empty for fewer than three effects."""
    return tuple(
        _plot(results, metric, sorted(effects, key=lambda e: e.size, reverse=True)[:_MOST], labels, f"{name}-{scale}")
        for scale, effects in by_scale(metric_effects(results, metric.name)).items()
        if len(effects) >= _FEWEST
    )


def _plot(results: Results, metric: Metric, effects: list[FactorEffect], labels: Labels, name: str) -> Plot:
    axis = effect_axis(results, metric, effects)
    traces: list[dict[str, Any]] = []
    for place, effect in enumerate(effects):
        traces += _row(len(effects) - 1 - place, effect, axis, labels, results)
    names = [effect_name(effect, labels) for effect in reversed(effects)]
    lines = max(plain_lines(name, _LABEL_WIDTH).count("<br>") + 1 for name in names)
    return Plot(
        name=name,
        title=f"Effects of the factors by size{in_words(axis.style)}",
        description=f"{metric.title}: the effect of each factor, averaged over the others, from the largest to the "
        f"smallest, with {100 * results.level:g} % intervals for all together; the band is too small to matter.",
        figure=figure(
            traces,
            xaxis=x_axis(axis, metric),
            yaxis=level_axis(names, width=_LABEL_WIDTH),
            shapes=zone_shapes(axis),
        ),
        height=max(260, 70 + (10 + _LINE_HEIGHT * lines) * len(effects)),
        legend=words_legend(effects, results.smallest_effect),
    )


def _row(height: int, effect: FactorEffect, axis: EffectAxis, labels: Labels, results: Results) -> list[dict[str, Any]]:
    estimate = known(effect.estimate)
    if estimate is None:
        return []
    text = axis.hover_text(effect, effect_name(effect, labels), verdict_text(effect, results.smallest_effect))
    at = axis.place(estimate)
    return [
        _line(axis.place(neutral(axis.style)), at, height, effect.verdict, 12, 0.35, text),
        _line(*axis.interval(effect), height, effect.verdict, 2, 1.0, text),
        scatter(
            "markers",
            [at],
            [height],
            [text],
            marker={"symbol": SYMBOLS[effect.verdict], "size": 9, "color": variable(effect.verdict)},
        ),
    ]


def _line(begin: float, end: float, height: int, role: str, width: int, opacity: float, text: str) -> dict[str, Any]:
    return scatter(
        "lines",
        [begin, end],
        [height, height],
        [text, text],
        line={"color": variable(role), "width": width},
        opacity=opacity,
    )


# How the effect of one factor depends on the level of another: parallel lines where it does not.


_MOST_PLOTS: Final = 6
_MOST_LEVELS: Final = 24
_APART: Final = 0.06  # of the distance of two levels, between lines, so that intervals do not hide each other


def interaction_plots(results: Results, metric: Metric, labels: Labels, name: str) -> tuple[Plot, ...]:
    """Return a plot for each pair of factors, of the most different lines first; not more than six."""
    by_pair: dict[tuple[str, str], list[FactorCell]] = {}
    for cell in CELLS.of(results):
        if cell.metric == metric.name and known(cell.estimate) is not None:
            by_pair.setdefault(cell.factors, []).append(cell)
    ranked = sorted(by_pair, key=lambda pair: _largest(EFFECTS.of(results), metric, pair), reverse=True)
    plots = (
        _interaction_plot(results, metric, by_pair[pair], labels, f"{name}-{place}")
        for place, pair in enumerate(ranked)
    )
    return tuple([plot for plot in plots if plot is not None][:_MOST_PLOTS])


def _largest(effects: tuple[FactorEffect, ...], metric: Metric, pair: tuple[str, str]) -> float:
    return max((e.size for e in effects if e.metric == metric.name and e.factors == pair), default=0.0)


def _interaction_plot(
    results: Results, metric: Metric, cells: list[FactorCell], labels: Labels, name: str
) -> Plot | None:
    # The factor with more levels along the axis, a line for each level of the other.
    first, second = (next(f for f in results.factors if f.name == name) for name in cells[0].factors)
    along, lines = (0, 1) if len(first.levels) >= len(second.levels) else (1, 0)
    across, other = (first, second) if along == 0 else (second, first)
    if len(other.levels) > SERIES or len(across.levels) > _MOST_LEVELS:
        return None

    def column(cell: FactorCell) -> int:
        return across.levels.index(cell.levels[along])

    figures = [v for c in cells if (v := known(c.estimate)) is not None]
    if cells[0].scale == "difference":
        style = EffectStyle("difference", common_format(figures, metric.unit))
    elif all(0.5 <= value <= 2 for value in figures):
        style = EffectStyle("percent", NumberFormat("%", decimals=1))
    else:
        style = EffectStyle("factor", NumberFormat(""))
    traces = []
    for place, level in enumerate(other.levels):
        ordered = sorted((c for c in cells if c.levels[lines] == level), key=column)
        shift = _APART * (place - (len(other.levels) - 1) / 2)
        traces.append(_interaction_line(ordered, [column(c) + shift for c in ordered], mark(place), style, labels))
    return Plot(
        name=name,
        title=f"{visible_line(across.name)} by {visible_line(other.name)}, against the baselines{in_unit(style.unit)}",
        description=f"{metric.title} at the levels of {across.name}, a line for each level of {other.name}, against "
        f"the baselines of both, with intervals; parallel lines mean that neither depends on the other.",
        figure=figure(
            traces,
            xaxis=level_axis([labels.level(across.name, level) for level in across.levels]),
            yaxis={"type": "log", "tickprefix": "×", "nticks": 7} if style.kind == "factor" else {"tickformat": ",~g"},
        ),
        height=320,
        legend=tuple(
            LegendEntry(labels.level(other.name, level), mark(place).symbol, mark(place).role)
            for place, level in enumerate(other.levels)
        ),
        legend_title=visible_line(other.name),
    )


def _interaction_line(
    cells: list[FactorCell], at: list[float], series: Mark, style: EffectStyle, labels: Labels
) -> dict[str, Any]:
    means = [_place(cell.estimate, style) or 0.0 for cell in cells]
    ends = [(_place(cell.low, style), _place(cell.high, style)) for cell in cells]
    hovers = [
        f"<b>{plain(', '.join(f'{n} {labels.level(n, x)}' for n, x in zip(c.factors, c.levels, strict=True)))}</b><br>"
        f"{plain(_words(c, style))}"
        for c in cells
    ]
    return scatter(
        "lines+markers",
        at,
        means,
        hovers,
        line={"color": series.colour, "width": 2},
        marker={"symbol": series.symbol, "size": 9, "color": series.colour},
        error_y=error_bars(
            [0.0 if high is None else high - mean for mean, (_, high) in zip(means, ends, strict=True)],
            [0.0 if low is None else mean - low for mean, (low, _) in zip(means, ends, strict=True)],
            series.colour,
            thickness=1.5,
            width=4,
        ),
    )


def _place(value: float | None, style: EffectStyle) -> float | None:
    finite = known(value)
    if finite is None or style.kind == "factor":
        return finite
    return 100 * (finite - 1) if style.kind == "percent" else style.fmt.scaled(finite)


def _words(cell: FactorCell, style: EffectStyle) -> str:
    texts = [
        style.figure(v) if (v := known(value)) is not None else "?" for value in (cell.estimate, cell.low, cell.high)
    ]
    return f"{texts[0]} {style.unit}, interval {texts[1]} … {texts[2]}"

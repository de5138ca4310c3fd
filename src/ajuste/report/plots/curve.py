"""A metric against the levels of one factor, and beside the predictions of a rule."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from ajuste.model.metric import Metric
from ajuste.model.prediction import Prediction
from ajuste.model.results import Measured, Point, Results
from ajuste.model.trial import Factor
from ajuste.model.wording import visible_line
from ajuste.report.format import Labels, NumberFormat, in_unit, numeric_levels
from ajuste.report.listings import metric_predictions, predicted_text, prediction_format, residual_text
from ajuste.report.plots.plot import (
    SERIES,
    LegendEntry,
    Mark,
    Plot,
    figure,
    level_axis,
    mark,
    plain,
    plain_lines,
    scatter,
    spaced,
    variable,
)
from ajuste.report.plots.trials import clean_trials, exact, figure_axis, hover_text

_FEWEST_LEVELS: Final = 3
_LOG_LEVELS: Final = 10.0  # levels that span a decade or more are drawn on a logarithmic axis

_LABEL_ROOM: Final = 0.11  # of the axis, for a label of a level


def curve_plot(results: Results, metric: Metric, factor: Factor, labels: Labels, name: str) -> Plot | None:
    """Return a line for each combination of the other factors' levels.

    ``None`` for fewer than three numeric levels or more lines than can be distinguished.
    """
    numbers = numeric_levels(factor)
    lines = _lines(results, factor, [other.name for other in labels.factors if other.name != factor.name])
    values = [c.metrics[metric.name].mean for c in results.configurations if metric.name in c.metrics]
    if numbers is None or len(set(numbers)) < _FEWEST_LEVELS or len(lines) > SERIES or not values:
        return None
    at = dict(zip(factor.levels, numbers, strict=True))
    fmt = exact(metric, values)
    clean = clean_trials(results, metric)
    traces: list[dict[str, Any]] = []
    for place, configurations in enumerate(lines.values()):
        ordered = sorted(configurations, key=lambda c: at[c.levels[factor.name]])
        places = {c.name: at[c.levels[factor.name]] for c in ordered}
        line = _Line(metric, ordered, places, mark(place if len(lines) > 1 else 1), labels, fmt)
        traces += [line.trials(clean), line.means()]
    others = [f for f in labels.factors if f.name != factor.name]
    return Plot(
        name=name,
        title=f"Against {visible_line(factor.name)}{in_unit(fmt.unit)}",
        description=f"{metric.title} against the levels of {factor.name}: means joined by lines, every clean trial.",
        figure=figure(
            traces,
            xaxis=_level_ticks(factor, numbers, labels),
            yaxis=figure_axis([fmt.scaled(t.metrics[metric.name]) for t in clean]),
        ),
        height=320,
        legend=_legend(list(lines), others, labels),
        legend_title=", ".join(visible_line(other.name) for other in others),
    )


def _lines(results: Results, factor: Factor, others: list[str]) -> dict[tuple[str, ...], list[Measured]]:
    # Configurations by the levels of the `others`, the factors but `factor`.
    lines: dict[tuple[str, ...], list[Measured]] = {}
    for configuration in results.configurations:
        if configuration.levels.get(factor.name) in factor.levels:
            other_levels = tuple(configuration.levels[name] for name in others if name in configuration.levels)
            lines.setdefault(other_levels, []).append(configuration)
    return lines


@dataclass(frozen=True)
class _Line:
    # Configurations that differ in nothing but the level of one factor, each at its place on the axis.
    metric: Metric
    configurations: list[Measured]
    places: dict[str, float]
    mark: Mark
    labels: Labels
    fmt: NumberFormat

    def means(self) -> dict[str, Any]:
        summaries = [(c, c.metrics[self.metric.name]) for c in self.configurations if self.metric.name in c.metrics]
        return scatter(
            "lines+markers",
            [self.places[c.name] for c, _ in summaries],
            [self.fmt.scaled(summary.mean) for _, summary in summaries],
            [
                f"<b>{plain(self.labels.short(c))}</b><br>mean of {summary.n} trials: "
                f"{plain(self.fmt.with_unit(summary.mean))}"
                for c, summary in summaries
            ],
            line={"color": self.mark.colour, "width": 2},
            marker={"symbol": self.mark.symbol, "size": 9, "color": self.mark.colour},
        )

    def trials(self, clean: list[Point]) -> dict[str, Any]:
        names = {c.name: self.labels.short(c) for c in self.configurations}
        points = [t for t in clean if t.configuration in names]
        return scatter(
            "markers",
            [self.places[t.configuration] for t in points],
            [self.fmt.scaled(t.metrics[self.metric.name]) for t in points],
            [hover_text(t, names[t.configuration], self.metric, self.fmt) for t in points],
            marker={"symbol": self.mark.symbol, "size": 6, "color": self.mark.colour, "opacity": 0.4},
        )


def _level_ticks(factor: Factor, numbers: list[float], labels: Labels) -> dict[str, Any]:
    # Ticks at all levels; a label only where it does not run into the one before or into the last.
    logarithmic = min(numbers) > 0 and max(numbers) / min(numbers) >= _LOG_LEVELS
    ticks = sorted(zip(numbers, factor.levels, strict=True))
    at = [math.log(value) if logarithmic else value for value, _ in ticks]
    labelled = spaced(at, _LABEL_ROOM * (at[-1] - at[0]))
    return {
        "type": "log" if logarithmic else "linear",
        "tickmode": "array",
        "tickvals": [value for value, _ in ticks],
        "ticktext": [
            plain(labels.level(factor.name, level)) if place in labelled else ""
            for place, (_, level) in zip(at, ticks, strict=True)
        ],
        "tickangle": 0,
    }


def _legend(lines: list[tuple[str, ...]], others: list[Factor], labels: Labels) -> tuple[LegendEntry, ...]:
    if len(lines) < 2:
        return ()
    return tuple(
        LegendEntry(
            ", ".join(labels.level(factor.name, level) for factor, level in zip(others, levels, strict=True)),
            mark(place).symbol,
            mark(place).role,
        )
        for place, levels in enumerate(lines)
    )


# What was measured beside what a rule predicts: a row for each configuration.


_ROW_HEIGHT: Final = 28
_PREDICTED: Final = "series-2"
_MEASURED: Final = "series-1"


def predicted_plot(results: Results, metric: Metric, labels: Labels, name: str) -> Plot | None:
    """Return figures beside the predictions of a rule; ``None`` if no rule predicts this metric."""
    predictions = metric_predictions(results, metric)
    if not predictions:
        return None
    fmt = prediction_format(predictions, metric)
    names = labels.by_name(results)
    rows = {prediction.configuration: len(predictions) - 1 - place for place, prediction in enumerate(predictions)}
    traces = [_predicted(prediction, rows, names, fmt) for prediction in predictions]
    traces += [_trial_marks(results, metric, rows, fmt), _mean_marks(predictions, rows, names, fmt)]
    ends = [fmt.scaled(v) for p in predictions for v in (p.low, p.high, p.measured) if v is not None]
    return Plot(
        name=name,
        title=f"Measured and predicted{in_unit(fmt.unit)}",
        description=f"{metric.title}: for each configuration the mean, every clean trial, and what the rule predicts.",
        figure=figure(
            traces,
            xaxis={"rangemode": "tozero"} if metric.scale == "difference" else figure_axis(ends),
            yaxis=level_axis([names[prediction.configuration] for prediction in reversed(predictions)], width=26),
        ),
        height=max(220, 70 + _ROW_HEIGHT * len(predictions)),
        legend=(LegendEntry("predicted", "diamond", _PREDICTED), LegendEntry("measured, mean", "circle", _MEASURED)),
        wide=len(predictions) > 8,
    )


def _predicted(
    prediction: Prediction, rows: dict[str, int], names: dict[str, str], fmt: NumberFormat
) -> dict[str, Any]:
    # A diamond for one value, a bar between two for a range.
    exact = prediction.low == prediction.high
    ends = [prediction.low] if exact else [prediction.low, prediction.high]
    return scatter(
        "markers" if exact else "lines+markers",
        [fmt.scaled(end) for end in ends],
        [rows[prediction.configuration]] * len(ends),
        [_predicted_text(prediction, names, fmt)] * len(ends),
        line={"color": variable(_PREDICTED), "width": 7},
        opacity=0.75,
        marker={"symbol": "diamond", "size": 15 if exact else 9, "color": variable(_PREDICTED)},
    )


def _mean_marks(
    predictions: tuple[Prediction, ...], rows: dict[str, int], names: dict[str, str], fmt: NumberFormat
) -> dict[str, Any]:
    measured = [(p, p.measured) for p in predictions if p.measured is not None]
    return scatter(
        "markers",
        [fmt.scaled(mean) for _, mean in measured],
        [rows[p.configuration] for p, _ in measured],
        [_predicted_text(p, names, fmt) for p, _ in measured],
        marker={
            "symbol": "circle",
            "size": 8,
            "color": variable(_MEASURED),
            "line": {"width": 1, "color": variable("card")},
        },
    )


def _trial_marks(results: Results, metric: Metric, rows: dict[str, int], fmt: NumberFormat) -> dict[str, Any]:
    clean = [t for t in clean_trials(results, metric) if t.configuration in rows]
    return scatter(
        "markers",
        [fmt.scaled(t.metrics[metric.name]) for t in clean],
        [rows[t.configuration] - 0.28 for t in clean],
        marker={"symbol": "circle", "size": 5, "color": variable(_MEASURED), "opacity": 0.45},
    )


def _predicted_text(prediction: Prediction, names: dict[str, str], fmt: NumberFormat) -> str:
    measured = "" if prediction.measured is None else f"<br>measured {plain(fmt.with_unit(prediction.measured))}"
    residual = "" if prediction.measured is None else f" ({plain(residual_text(prediction, fmt))})"
    predicted = f"{predicted_text(prediction, fmt)} {fmt.unit}".rstrip()
    return (
        f"<b>{plain_lines(names[prediction.configuration], 40)}</b><br>predicted {plain(predicted)}{measured}{residual}"
        f"<br>{plain_lines(prediction.why, 48)}"
    )

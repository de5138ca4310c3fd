"""What was measured beside what a rule predicts: a row for each configuration."""

from __future__ import annotations

from typing import Any, Final

from ajuste.model.metric import Metric
from ajuste.model.results import Prediction, Results
from ajuste.report.format import ShownNumber
from ajuste.report.labels import Labels
from ajuste.report.listings import predicted_text, prediction_shown, predictions_of, residual_text
from ajuste.report.palette import variable
from ajuste.report.plots.plot import LegendEntry, Plot, figure, level_axis, plain, plain_lines
from ajuste.report.plots.trials import figure_axis, kind_of

_ROW_HEIGHT: Final = 28
_PREDICTED: Final = "series-2"
_MEASURED: Final = "series-1"


def predicted_plot(results: Results, metric: Metric, labels: Labels, name: str) -> Plot | None:
    """``None`` where no rule predicts this metric."""
    own = predictions_of(results, metric)
    if not own:
        return None
    shown = prediction_shown(own, metric)
    names = {configuration.name: labels.short(configuration) for configuration in results.configurations}
    rows = {prediction.configuration: len(own) - 1 - place for place, prediction in enumerate(own)}
    traces = [_predicted(prediction, rows, names, shown) for prediction in own]
    traces += [_trials(results, metric, rows, shown), _means(own, rows, names, shown)]
    unit = f", in\u00a0{shown.unit}" if shown.unit else ""
    ends = [shown.scaled(v) for p in own for v in (p.low, p.high, p.measured) if v is not None]
    return Plot(
        name=name,
        title=f"Measured and predicted{unit}",
        description=f"{metric.title}: for each configuration the mean, every clean trial, and what the rule predicts.",
        figure=figure(
            traces,
            xaxis={"rangemode": "tozero"} if metric.scale == "difference" else figure_axis(ends),
            yaxis=level_axis([names[prediction.configuration] for prediction in reversed(own)], width=26),
        ),
        height=max(220, 70 + _ROW_HEIGHT * len(own)),
        legend=(LegendEntry("predicted", "diamond", _PREDICTED), LegendEntry("measured, mean", "circle", _MEASURED)),
        wide=len(own) > 8,
    )


def _predicted(
    prediction: Prediction, rows: dict[str, int], names: dict[str, str], shown: ShownNumber
) -> dict[str, Any]:
    """A diamond for one value, a bar between two for a range."""
    exact = prediction.low == prediction.high
    ends = [prediction.low] if exact else [prediction.low, prediction.high]
    return {
        "type": "scatter",
        "mode": "markers" if exact else "lines+markers",
        "x": [shown.scaled(end) for end in ends],
        "y": [rows[prediction.configuration]] * len(ends),
        "line": {"color": variable(_PREDICTED), "width": 7},
        "opacity": 0.75,
        "marker": {"symbol": "diamond", "size": 15 if exact else 9, "color": variable(_PREDICTED)},
        "hoverinfo": "text",
        "hovertext": [_said(prediction, names, shown)] * len(ends),
    }


def _means(
    own: tuple[Prediction, ...], rows: dict[str, int], names: dict[str, str], shown: ShownNumber
) -> dict[str, Any]:
    measured = [(p, p.measured) for p in own if p.measured is not None]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [shown.scaled(mean) for _, mean in measured],
        "y": [rows[p.configuration] for p, _ in measured],
        "marker": {
            "symbol": "circle",
            "size": 8,
            "color": variable(_MEASURED),
            "line": {"width": 1, "color": variable("card")},
        },
        "hoverinfo": "text",
        "hovertext": [_said(p, names, shown) for p, _ in measured],
    }


def _trials(results: Results, metric: Metric, rows: dict[str, int], shown: ShownNumber) -> dict[str, Any]:
    clean = [
        t for t in results.trials if t.configuration in rows and metric.name in t.metrics and kind_of(t) == "clean"
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [shown.scaled(t.metrics[metric.name]) for t in clean],
        "y": [rows[t.configuration] - 0.28 for t in clean],
        "marker": {"symbol": "circle", "size": 5, "color": variable(_MEASURED), "opacity": 0.45},
        "hoverinfo": "skip",
    }


def _said(prediction: Prediction, names: dict[str, str], shown: ShownNumber) -> str:
    measured = "" if prediction.measured is None else f"<br>measured {plain(shown.with_unit(prediction.measured))}"
    residual = "" if prediction.measured is None else f" ({plain(residual_text(prediction, shown))})"
    predicted = f"{predicted_text(prediction, shown)} {shown.unit}".rstrip()
    return (
        f"<b>{plain_lines(names[prediction.configuration], 40)}</b><br>predicted {plain(predicted)}{measured}{residual}"
        f"<br>{plain_lines(prediction.why, 48)}"
    )

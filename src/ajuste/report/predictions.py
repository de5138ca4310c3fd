"""What a rule of the kernel predicts, beside what was measured."""

from __future__ import annotations

from typing import Final

from ajuste.model.metric import Metric
from ajuste.model.results import Prediction, Results
from ajuste.report.format import NOTHING, Shown, shown_as
from ajuste.report.labels import Labels
from ajuste.report.listing import Group, Line, Listing

_COLUMNS: Final = ("Predicted", "Measured", "Residual", "Because")


def predictions_listing(results: Results, labels: Labels) -> Listing | None:
    """The table, or ``None`` if no rule was asked for or it says nothing of this study."""
    groups = tuple(
        Group(f"{metric.title}{f', in {shown.unit}' if (shown := prediction_shown(own, metric)).unit else ''}", lines)
        for metric in results.metrics
        if (own := predictions_of(results, metric)) and (lines := _lines(results, own, metric, labels))
    )
    if results.rule is None or not groups:
        return None
    return Listing(
        "predictions",
        f"Predicted: {results.rule.title[:1].lower()}{results.rule.title[1:]}",
        results.rule.says,
        _COLUMNS,
        groups,
        f"Source: {results.rule.source}.",
        optional=True,
    )


def predictions_of(results: Results, metric: Metric) -> tuple[Prediction, ...]:
    """The predictions of one metric, in the order of the configurations."""
    order = {configuration.name: place for place, configuration in enumerate(results.configurations)}
    own = (p for p in results.predictions if p.metric == metric.name and p.configuration in order)
    return tuple(sorted(own, key=lambda p: order[p.configuration]))


def prediction_shown(predictions: tuple[Prediction, ...], metric: Metric) -> Shown:
    """One unit for predicted and measured figures."""
    residuals = [abs(p.residual) for p in predictions if p.residual]
    return shown_as(
        [v for p in predictions for v in (p.low, p.high, p.measured) if v is not None], metric.unit, residuals
    )


def predicted_text(prediction: Prediction, shown: Shown) -> str:
    """One figure, or from … to."""
    if prediction.low == prediction.high:
        return shown.text(prediction.low)
    return f"{shown.text(prediction.low)} … {shown.text(prediction.high)}"


def residual_text(prediction: Prediction, shown: Shown) -> str:
    if prediction.residual is None:
        return NOTHING
    within = prediction.residual == 0 and prediction.low < prediction.high
    return "within" if within else shown.signed(prediction.residual)


def _lines(results: Results, own: tuple[Prediction, ...], metric: Metric, labels: Labels) -> tuple[Line, ...]:
    shown = prediction_shown(own, metric)
    configurations = {configuration.name: configuration for configuration in results.configurations}
    return tuple(
        Line(
            name=labels.short(configurations[prediction.configuration]),
            cells=(
                predicted_text(prediction, shown),
                NOTHING if prediction.measured is None else shown.text(prediction.measured),
                residual_text(prediction, shown),
                prediction.why,
            ),
        )
        for prediction in own
    )

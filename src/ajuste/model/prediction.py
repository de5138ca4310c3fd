"""Predictions of a rule, beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ajuste.model.base import BaseModel
from ajuste.model.facet import Facet
from ajuste.model.metric import PredictionRule


class Prediction(BaseModel):
    """The prediction of a rule for ``metric``: between ``low`` and ``high`` (equal where it says one value), in the
    metric's unit.

    ``measured`` is the mean of the clean trials, ``residual`` how far it is above ``high`` (positive) or below ``low``
    (negative); both None where nothing was measured. ``why`` says how this prediction came about.
    """

    configuration: str
    metric: str
    low: float
    high: float
    measured: float | None = None
    residual: float | None = None
    why: str = ""


MOST_OFF: Final = 0.2
"""Share of a metric's largest prediction; a rule that is further off somewhere does not predict the metric."""


def worst_miss(predictions: Sequence[Prediction], metric: str) -> Prediction | None:
    """Return the prediction of ``metric`` that is furthest off, if that is too far for the rule to hold."""
    judged = [p for p in predictions if p.metric == metric and p.residual is not None]
    worst = max(judged, key=lambda prediction: abs(prediction.residual or 0.0), default=None)
    if worst is None or abs(worst.residual or 0.0) <= MOST_OFF * max(prediction.high for prediction in judged):
        return None
    return worst


RULE: Final = Facet[PredictionRule | None]("rule", PredictionRule, None)
"""The rule that the study asked for."""

PREDICTIONS: Final = Facet[tuple[Prediction, ...]]("predictions", tuple[Prediction, ...], ())

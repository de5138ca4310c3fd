"""Predictions beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ajuste.analysis.prediction import FORECASTS, Forecast, agreement, predictions
from ajuste.analysis.summary import summarise
from ajuste.catalogue.loader import catalogue
from ajuste.model.kernel import KernelVersion
from ajuste.model.metric import Metric, PredictionRule
from ajuste.model.prediction import Prediction
from ajuste.model.results import Measured
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study


@pytest.fixture(scope="module")
def study() -> ResolvedStudy:
    document = {
        "name": "try",
        "factor": [{"name": "nice", "levels": [0, 4]}],
        "workload": {"kind": "hog"},
        "target": {"kernel": "debian:5.10"},
        "analysis": {"metrics": ["elapsed"], "prediction": "nice-weights"},
    }
    return resolve(Study.model_validate(document), catalogue(), {"debian:5.10": KernelVersion(major=5, minor=10)}, str)


def measured(name: str, *values: float) -> Measured:
    return Measured(name=name, levels={}, metrics={"elapsed": summarise(values)} if values else {})


@pytest.mark.parametrize(("mean", "residual"), [(5.5, 0.0), (5.0, 0.0), (4.5, -0.5), (7.0, 1.0)])
def test_a_residual_is_how_far_the_mean_is_outside_the_range(
    study: ResolvedStudy, monkeypatch: pytest.MonkeyPatch, mean: float, residual: float
) -> None:
    def rule(_: ResolvedStudy) -> Iterator[Forecast]:
        yield Forecast("nice=4", "elapsed", 5.0, 6.0, "because")

    monkeypatch.setattr("ajuste.analysis.prediction.FORECASTS", {"nice-weights": rule})
    (prediction,) = predictions(study, [measured("nice=4", mean - 1, mean + 1)])
    assert (prediction.low, prediction.high, prediction.why) == (5.0, 6.0, "because")
    assert (prediction.measured, prediction.residual) == (pytest.approx(mean), pytest.approx(residual))
    (nothing,) = predictions(study, [measured("nice=4")])
    assert (nothing.measured, nothing.residual) == (None, None)


def test_a_study_without_a_rule_predicts_nothing(study: ResolvedStudy) -> None:
    assert predictions(study.model_copy(update={"rule": None}), []) == ()


def test_every_rule_of_the_catalogue_has_its_forecasts_and_the_other_way_round() -> None:
    assert set(FORECASTS) == set(catalogue().rules)


ELAPSED = Metric(name="elapsed", title="Elapsed time", unit="s", direction="lower")
RULE = PredictionRule(name="nice-weights", title="The weights", says="It does.", source="a file")


def beside(configuration: str, residual: float | None) -> Prediction:
    return Prediction(configuration=configuration, metric="elapsed", low=1, high=2, residual=residual)


def test_the_answer_says_how_far_the_rule_is_off_at_worst() -> None:
    predicted = [beside("a", 0.0), beside("b", -0.25), beside("c", 0.125), beside("d", None)]
    assert agreement(RULE, predicted, [ELAPSED]) == (
        "The rule (The weights) predicts the elapsed time to within 0.25 s in all 3 configurations, worst at b."
    )
    far = [beside("a", 0.0), beside("b", -0.5)]
    assert agreement(RULE, far, [ELAPSED]) == (
        "The rule (The weights) does not predict the elapsed time: at b it is off by 0.5 s."
    )
    assert agreement(RULE, [beside("a", 0.0)], [ELAPSED]).endswith("correctly in the one configuration.")
    assert agreement(RULE, [beside("a", None)], [ELAPSED]) == ""

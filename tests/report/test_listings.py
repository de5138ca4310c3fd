"""Predictions and the 3-sigma rule beside the verdicts, in terminal and HTML."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tests.report.plotted import checked
from tests.report.simulated import HOSTILE, INVOLUNTARY

from ajuste.model.metric import PredictionRule
from ajuste.model.prediction import PREDICTIONS, Prediction
from ajuste.model.results import Results
from ajuste.model.three_sigma import ThreeSigma
from ajuste.report.format import result_labels
from ajuste.report.html import render_html
from ajuste.report.plots.curve import predicted_plot
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report

RULE = PredictionRule(
    name="nice-weights", title="The weights", says="Shares follow weights.", source="kernel/sched/core.c"
)


@pytest.fixture
def predicted(granularity: Results) -> Results:
    """Results with a prediction for each configuration, the first a range that holds, and the 3-sigma rule."""
    names = [configuration.name for configuration in granularity.configurations]
    predictions = [
        Prediction(configuration=name, metric="involuntary-switches", low=100, high=100, measured=90, residual=-10)
        for name in names[1:]
    ]
    first = Prediction(
        configuration=names[0], metric="involuntary-switches", low=100, high=150, measured=133, residual=0, why="x=1"
    )
    sigma = [
        ThreeSigma(configuration=names[0], metric="involuntary-switches", n=5, mean=133, values=(130, 136), means=None),
        ThreeSigma(
            configuration=names[1],
            metric="involuntary-switches",
            n=5,
            mean=68,
            values=(60, 76),
            means=(66, 70),
            values_differ=False,
            means_differ=True,
            verdict="undecided",
            disagrees=True,
            why="Too few values.",
        ),
    ]
    update = {"rule": RULE, "predictions": (first, *predictions), "three_sigma": tuple(sigma)}
    return granularity.model_copy(update=update)


def printed(results: Results, width: int) -> str:
    out = io.StringIO()
    print_report(results_report(results), Console(file=out, width=width), verbose=True)
    return out.getvalue()


@pytest.mark.parametrize("width", [50, 80, 160])
def test_the_terminal_shows_prediction_and_residual_at_any_width(predicted: Results, width: int) -> None:
    text = " ".join(printed(predicted, width).split())
    assert "Predicted: the weights" in text
    assert "Shares follow weights." in text
    assert "−10" in text
    assert "100 … 150" in text
    assert "within" in text
    assert "Too few values." in text
    assert "Rule and verdict disagree in 1 case." in text


def test_the_report_has_both_tables_and_a_plot(predicted: Results) -> None:
    page = render_html(results_report(predicted))
    assert 'id="predictions"' in page
    assert 'id="three-sigma"' in page
    assert "Measured and predicted" in page
    assert "Too few values." in page


def test_nothing_of_them_is_shown_where_a_study_does_not_ask(granularity: Results) -> None:
    page = render_html(results_report(granularity))
    assert 'id="predictions"' not in page
    assert 'id="three-sigma"' not in page
    assert "3-sigma" not in printed(granularity, 100)


def test_what_a_rule_says_is_text_whatever_it_contains(predicted: Results) -> None:
    rule = RULE.model_copy(update={"says": HOSTILE, "title": HOSTILE})
    hostile = PREDICTIONS.of(predicted)[0].model_copy(update={"why": HOSTILE})
    page = render_html(results_report(predicted.model_copy(update={"rule": rule, "predictions": (hostile,)})))
    assert HOSTILE not in page


def test_the_plot_has_each_prediction_and_the_measured_means(predicted: Results) -> None:
    plot = predicted_plot(predicted, INVOLUNTARY, result_labels(predicted), "p")
    assert plot is not None
    traces = checked(plot).to_plotly_json()["data"]
    assert [list(trace["x"]) for trace in traces[:2]] == [[100, 150], [100]]
    assert list(traces[-1]["x"]) == [133, *[90] * (len(PREDICTIONS.of(predicted)) - 1)]

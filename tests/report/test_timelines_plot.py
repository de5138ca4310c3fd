"""The plot of what samplers read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.report.plotted import checked

from ajuste.model.results import Results
from ajuste.model.timeline import TIMELINES
from ajuste.report.format import result_labels
from ajuste.report.html import render_html
from ajuste.report.plots.plot import Plot
from ajuste.report.plots.timelines import timelines_plot
from ajuste.report.results import results_report


def drawn(results: Results) -> Plot:
    plot = timelines_plot(results, result_labels(results))
    assert plot is not None
    return plot


def traces(plot: Plot, mode: str) -> list[dict[str, Any]]:
    return [trace for trace in checked(plot).to_dict()["data"] if trace["mode"] == mode]


def test_every_line_is_drawn_on_one_axis_of_time(timed: Results) -> None:
    plot = drawn(timed)
    lines = traces(plot, "lines")
    assert len(lines) == sum(len(figure.lines) for figure in TIMELINES.of(timed))
    assert {trace.get("xaxis", "x") for trace in lines} == {"x"}
    assert {trace["yaxis"] for trace in lines} == {"y", "y2", "y3"}
    assert sum(trace["line"]["width"] > 2 for trace in lines) == 3 * len(timed.configurations)
    assert checked(plot).layout.xaxis.range == (0, 40)


def test_a_delay_lies_on_the_line_of_its_trial(timed: Results) -> None:
    marks = traces(drawn(timed), "markers")
    assert [trace["x"][0] for trace in marks] == [pytest.approx(30 - 7 * place - 0.05) for place in range(4)]
    assert [trace["y"][0] for trace in marks] == [pytest.approx(640)] * 4


def test_units_are_those_that_are_easiest_to_read(timed: Results) -> None:
    titles = [annotation.text for annotation in checked(drawn(timed)).layout.annotations]
    assert titles == [
        "<b>vmstat nr_written</b><br>growth since the workload's start, in pages",
        "<b>meminfo Dirty</b><br>in MiB",
        "<b>stat ctxt</b><br>rate, in 1/s",
    ]


def test_a_study_without_samplers_has_none(granularity: Results, timed: Results) -> None:
    assert timelines_plot(granularity, result_labels(granularity)) is None
    assert 'id="timelines-section-title"' not in render_html(results_report(granularity))
    assert 'id="timelines-section-title"' in render_html(results_report(timed))


def test_the_document_keeps_them(timed: Results) -> None:
    assert TIMELINES.of(Results.model_validate_json(timed.model_dump_json())) == TIMELINES.of(timed)

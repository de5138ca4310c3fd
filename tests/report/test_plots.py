"""The figures: every trial and every interval is where its number says."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from tests.report.plotted import checked

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.report.format import result_labels
from ajuste.report.plots.curve import curve_plot
from ajuste.report.plots.forest import forest_plots
from ajuste.report.plots.heatmap import heatmap_plot
from ajuste.report.plots.plot import Plot, figure_json
from ajuste.report.plots.trials import small_plot, trials_plot
from ajuste.report.results import results_report


def metric(results: Results, name: str) -> Metric:
    return next(metric for metric in results.metrics if metric.name == name)


def points(plot: Plot) -> list[tuple[float, float, dict[str, Any]]]:
    return [
        (x, y, trace)
        for trace in checked(plot).to_dict()["data"]
        if "markers" in trace["mode"]
        for x, y in zip(trace["x"], trace["y"], strict=True)
    ]


@pytest.mark.parametrize("name", ["granularity", "grid", "undecided", "crowded", "timed", "hostile"])
def test_plotly_knows_every_property_and_changes_no_value(name: str, request: pytest.FixtureRequest) -> None:
    drawn = [picture.plot for picture in results_report(request.getfixturevalue(name)).pictures]
    assert drawn
    for plot in drawn:
        read, ours = (json.loads(figure_json(figure)) for figure in (checked(plot).to_dict(), plot.figure))
        assert read["data"] == ours["data"]
        assert {key: value for key, value in ours["layout"].items() if value != {}} == read["layout"]


@pytest.mark.parametrize(
    ("name", "of"), [("granularity", "elapsed"), ("grid", "hackbench.time"), ("undecided", "elapsed")]
)
def test_every_trial_is_drawn(name: str, of: str, request: pytest.FixtureRequest) -> None:
    results = request.getfixturevalue(name)
    assert len(points(trials_plot(results, metric(results, of), result_labels(results), "p"))) == len(results.trials)


def test_trials_stand_at_their_block_and_figure(granularity: Results) -> None:
    plot = trials_plot(granularity, metric(granularity, "elapsed"), result_labels(granularity), "p")
    drawn = {(round(x), round(y, 9)) for x, y, _ in points(plot)}
    assert drawn == {(t.block, round(t.metrics["elapsed"], 9)) for t in granularity.trials}


def test_trials_that_do_not_count_look_different_and_say_why(undecided: Results) -> None:
    plot = trials_plot(undecided, metric(undecided, "elapsed"), result_labels(undecided), "p")
    symbols: dict[str, set[str]] = {}
    for trace in checked(plot).to_dict()["data"]:
        for text in trace["hovertext"]:
            kind = next((k for k in ("failed:", "flagged:", "warm-up") if k in text), "clean")
            symbols.setdefault(kind, set()).add(trace["marker"]["symbol"])
    assert set(symbols) == {"failed:", "flagged:", "warm-up", "clean"}
    assert not symbols["clean"] & (symbols["failed:"] | symbols["flagged:"] | symbols["warm-up"])
    assert {entry.text for entry in plot.legend} >= {"failed, not measured", "flagged, left out and repeated"}
    assert any("the guest panicked" in text.replace("<br>", " ") for t in checked(plot).data for text in t.hovertext)


def test_a_trial_without_a_figure_is_not_given_one(undecided: Results) -> None:
    plot = trials_plot(undecided, metric(undecided, "elapsed"), result_labels(undecided), "p")
    failed = sum(trial.status == "failed" for trial in undecided.trials)
    assert sum(trace.get("yaxis") == "y2" for _, _, trace in points(plot)) == failed == 2


def test_intervals_and_estimates_are_those_of_the_verdicts(granularity: Results) -> None:
    [plot] = forest_plots(granularity, metric(granularity, "elapsed"), result_labels(granularity), "p")
    verdicts = [v for v in granularity.verdicts if v.metric == "elapsed"]
    lines = [trace for trace in checked(plot).to_dict()["data"] if trace["mode"] == "lines"]
    assert len(lines) == 3
    for verdict, line in zip(verdicts, lines, strict=True):
        assert verdict.low is not None
        assert verdict.high is not None
        assert line["x"] == pytest.approx((100 * (verdict.low - 1), 100 * (verdict.high - 1)))
    band = checked(plot).layout.shapes[0]
    assert (band.x0, band.x1) == pytest.approx((100 / 1.05 - 100, 5))


def test_the_band_of_a_difference_is_a_part_of_the_baseline(granularity: Results) -> None:
    [plot] = forest_plots(granularity, metric(granularity, "involuntary-switches"), result_labels(granularity), "p")
    mean = granularity.configurations[0].metrics["involuntary-switches"].mean
    band = checked(plot).layout.shapes[0]
    assert (band.x0, band.x1) == pytest.approx((-0.05 * mean, 0.05 * mean))


def test_an_interval_without_limits_is_dotted_and_ends_in_arrows(undecided: Results) -> None:
    endless = tuple(v.model_copy(update={"low": None, "high": None}) for v in undecided.verdicts)
    results = undecided.model_copy(update={"verdicts": endless})
    [plot] = forest_plots(results, metric(results, "elapsed"), result_labels(results), "p")
    left, right = checked(plot).layout.xaxis.range
    lines = [trace for trace in checked(plot).to_dict()["data"] if trace["mode"] == "lines"]
    assert {line["line"]["dash"] for line in lines} == {"dot"}
    ends = {"triangle-left": left, "triangle-right": right}
    arrows = [(trace["marker"]["symbol"], x) for x, _, trace in points(plot) if trace["marker"]["symbol"] in ends]
    assert len(arrows) == len(lines) > 0
    for symbol, x in arrows:  # within the plot, where none of it is cut off
        assert 0 < abs(x - ends[symbol]) < 0.05 * (right - left)
    assert "no limit yet on this side" in [entry.text for entry in plot.legend]


def test_an_enormous_interval_does_not_squeeze_the_others(granularity: Results) -> None:
    verdicts = tuple(
        v.model_copy(update={"estimate": 0.001, "low": 1e-200, "high": 1e200}) if v.metric == "elapsed" else v
        for v in granularity.verdicts
    )
    results = granularity.model_copy(update={"verdicts": verdicts})
    [plot] = forest_plots(results, metric(results, "elapsed"), result_labels(results), "p")
    left, right = checked(plot).layout.xaxis.range
    assert checked(plot).layout.xaxis.type == "log"
    assert right - left < 8


def test_scales_are_not_mixed_in_one_plot(granularity: Results) -> None:
    first, *others = (v for v in granularity.verdicts if v.metric == "elapsed")
    mixed = (first.model_copy(update={"scale": "difference", "estimate": 0.0, "low": -0.1, "high": 0.1}), *others)
    results = granularity.model_copy(update={"verdicts": mixed})
    plots = forest_plots(results, metric(results, "elapsed"), result_labels(results), "p")
    assert [("%" in plot.title) for plot in plots] == [False, True]
    assert len({plot.name for plot in plots}) == 2


def test_a_curve_goes_through_the_means_on_a_logarithmic_axis(granularity: Results) -> None:
    factor = granularity.factors[0]
    plot = curve_plot(granularity, metric(granularity, "involuntary-switches"), factor, result_labels(granularity), "p")
    assert plot is not None
    [line] = [trace for trace in checked(plot).to_dict()["data"] if trace["mode"] == "lines+markers"]
    assert tuple(line["x"]) == tuple(float(level) for level in factor.levels)
    means = [c.metrics["involuntary-switches"].mean for c in granularity.configurations]
    assert line["y"] == pytest.approx(means)
    assert checked(plot).layout.xaxis.type == "log"
    assert checked(plot).layout.yaxis.type == "log"


def test_two_factors_give_a_line_for_each_level_of_the_other(grid: Results) -> None:
    labels = result_labels(grid)
    counts = []
    for factor in grid.factors:
        plot = curve_plot(grid, metric(grid, "hackbench.time"), factor, labels, "p")
        assert plot is not None
        counts.append(sum(trace["mode"] == "lines+markers" for trace in checked(plot).to_dict()["data"]))
        assert len(plot.legend) == counts[-1]
    assert counts == [5, 6]


def test_levels_that_are_no_numbers_give_no_curve(granularity: Results) -> None:
    factor = granularity.factors[0].model_copy(update={"levels": ("other", "batch", "fifo"), "baseline": "other"})
    results = granularity.model_copy(update={"factors": (factor,)})
    assert curve_plot(results, metric(results, "elapsed"), factor, result_labels(results), "p") is None


def test_the_heat_map_has_each_mean_in_its_cell(grid: Results) -> None:
    plot = heatmap_plot(grid, metric(grid, "hackbench.time"), result_labels(grid), "p")
    assert plot is not None
    [trace] = checked(plot).to_dict()["data"]
    down, across = grid.factors
    for configuration in grid.configurations:
        row = len(down.levels) - 1 - down.levels.index(configuration.levels[down.name])
        column = across.levels.index(configuration.levels[across.name])
        assert trace["z"][row][column] == pytest.approx(configuration.metrics["hackbench.time"].mean)


def test_one_factor_has_no_heat_map(granularity: Results) -> None:
    assert heatmap_plot(granularity, metric(granularity, "elapsed"), result_labels(granularity), "p") is None


def test_a_described_metric_is_drawn_small_and_one_without_figures_not_at_all(granularity: Results) -> None:
    labels = result_labels(granularity)
    plot = small_plot(granularity, metric(granularity, "task-clock"), labels, "p")
    assert plot is not None
    assert len(points(plot)) == len(granularity.trials)
    assert all(math.isfinite(y) for _, y, _ in points(plot))
    assert small_plot(granularity, metric(granularity, "cycles"), labels, "p") is None

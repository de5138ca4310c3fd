"""Surfaces in the report: sentences and pictures that say what is known, and no more."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.report.plotted import checked
from tests.report.simulated import ELAPSED, Simulated, simulate

from ajuste.model.results import Results
from ajuste.model.surface import SURFACES
from ajuste.model.trial import Factor
from ajuste.report.document import Paragraph, Picture
from ajuste.report.format import result_labels
from ajuste.report.plots.plot import Plot
from ajuste_search.sections.surfaces import sections as surface_sections
from ajuste_search.surface.curves import View, surface_curves, surface_view
from ajuste_search.surface.map import surface_map

MS = ("1000000", "4000000", "8000000", "16000000", "20000000", "30000000")


def view(results: Results, metric: str = "hackbench.time") -> View:
    surface = next(surface for surface in SURFACES.of(results) if surface.metric == metric)
    return surface_view(results, surface, result_labels(results), {})


def the_map(results: Results, metric: str = "hackbench.time") -> Plot:
    plot = surface_map(view(results, metric), "p", wide=True)
    assert plot is not None
    return plot


def surface_sentences(results: Results) -> list[str]:
    (section,) = surface_sections(results, result_labels(results))
    return [block.text for block in section.blocks if isinstance(block, Paragraph)]


def study(truth: float, noise: float) -> Results:
    """Three by three levels without any effect."""
    factors = tuple(Factor(name=name, levels=("10", "20", "30"), baseline="10") for name in ("a", "b"))

    def draw(_levels: dict[str, str], random: np.random.Generator) -> dict[str, float]:
        return {"elapsed": truth * math.exp(random.normal(0, noise))}

    return simulate(Simulated(factors, (ELAPSED,), (ELAPSED,), draw, blocks=8))


def test_the_map_has_every_mean_where_its_levels_are(grid: Results) -> None:
    heat = checked(the_map(grid)).to_plotly_json()["data"][0]
    centres = [(left + right) / 2 for left, right in itertools.pairwise(heat["x"])]
    assert centres[1:-1] == pytest.approx([math.log10(float(level)) for level in MS[1:-1]], abs=0.1)
    widths = np.diff(heat["x"])
    assert widths[0] > 3 * widths[4]  # from 1 to 4 ms it is further than from 16 to 20, on a logarithmic scale
    best = min(grid.configurations, key=lambda c: c.metrics["hackbench.time"].mean)
    m = MS.index(best.levels[grid.factors[0].name])
    w = grid.factors[1].levels.index(best.levels[grid.factors[1].name])
    assert heat["z"][w][m] == min(value for row in heat["z"] for value in row)


def test_the_map_marks_the_best_its_set_and_the_baseline(grid: Results) -> None:
    surface = view(grid).surface
    texts = [entry.text for entry in the_map(grid).legend]
    assert texts[0].startswith("best: 16 ms")
    assert f"({len(surface.best_set)} of 30)" in texts[1]
    assert texts[2] == "baseline"
    hovers = [text for row in checked(the_map(grid)).to_plotly_json()["data"][0]["hovertext"] for text in row]
    assert sum("not distinguishable" in text for text in hovers) == len(surface.best_set) - 1
    assert sum("the baseline" in text for text in hovers) == 1


def test_what_was_not_measured_is_shown_as_interpolated(grid: Results) -> None:
    surface = view(grid).surface
    measured_points = tuple(point for place, point in enumerate(surface.points) if place not in (7, 12, 13))
    partly = replace(
        view(grid),
        surface=surface.model_copy(update={"points": measured_points}),
        cells={k: p for k, p in view(grid).cells.items() if p in measured_points},
    )
    plot = surface_map(partly, "p", wide=True)
    assert plot is not None
    measured, *_, guessed, dots, _, _, _ = checked(plot).to_plotly_json()["data"]
    assert sum(value is None for row in measured["z"] for value in row) == 3
    inside = [value for row in guessed["z"] for value in row if value is not None]
    assert len(inside) == 3
    assert all(min(inside) > 2.3 and value < 4 for value in inside)
    assert len(dots["x"]) == 27
    assert any("interpolated" in entry.text for entry in plot.legend)


def test_a_line_and_its_regions_for_each_level(grid: Results) -> None:
    plot = surface_curves(view(grid), 0, "p")
    assert plot is not None
    traces = checked(plot).to_plotly_json()["data"]
    lines = [trace for trace in traces if trace["mode"] == "lines+markers"]
    strips = [trace for trace in traces if trace.get("yaxis") == "y2"]
    assert [len(line["x"]) for line in lines] == [6] * 5
    assert all(high > 0 for line in lines for high in line["error_y"]["array"])
    assert {strip["y"][0] for strip in strips} == set(range(5))
    assert any("fast fall from 1 ms to 4 ms (−" in strip["hovertext"][0] for strip in strips)


def test_many_lines_are_thinned_out_but_keep_baseline_and_best() -> None:
    levels = tuple(str(level) for level in range(1, 21))
    factors = (Factor(name="a", levels=levels, baseline="1"), Factor(name="b", levels=levels, baseline="1"))

    def draw(at: dict[str, str], random: np.random.Generator) -> dict[str, float]:
        return {"elapsed": (10 + abs(int(at["b"]) - 7) + int(at["a"])) * math.exp(random.normal(0, 1e-3))}

    results = simulate(Simulated(factors, (ELAPSED,), (ELAPSED,), draw, blocks=2))
    plot = surface_curves(view(results, "elapsed"), 0, "p")
    assert plot is not None
    labels = [entry.text for entry in plot.legend if entry.symbol != "area"]
    assert len(labels) == 8
    assert {"1", "7"} <= set(labels)


def test_the_sentences(grid: Results) -> None:
    best, along_m, along_w, *correlated = surface_sentences(grid)
    assert "best at sched_min_granularity_ns = 16 ms" in best
    assert "Not distinguishable from it:" in best
    assert along_m.startswith(
        "Along sched_min_granularity_ns, with sched_wakeup_granularity_ns = 8 ms: fast fall from 1 ms"
    )
    assert along_w.startswith("Along sched_wakeup_granularity_ns")
    assert correlated[0].startswith("Hackbench time and ")
    assert "ρ = 0." in correlated[0]


def test_switches_have_the_same_pictures_as_the_deciding_metric(grid: Results) -> None:
    (section,) = surface_sections(grid, result_labels(grid))
    titles = [block.plot.title for block in section.blocks if isinstance(block, Picture)]
    for metric in ("Hackbench time", "Voluntary context switches", "Involuntary context switches"):
        matches = [title for title in titles if title.startswith(metric)]
        assert len(matches) == 3
        assert sum("over both" in title for title in matches) == 1


def test_a_flat_surface_says_that_nothing_matters() -> None:
    (sentence,) = surface_sentences(study(2.0, 0.001))
    assert sentence.startswith("No setting matters here: all 9 combinations are within ±")
    assert sentence.endswith("% of the baseline (elapsed time).")
    assert float(sentence.split("±")[1].split(" ")[0]) < 5


def test_noise_does_not_say_that_nothing_matters() -> None:
    sentences = surface_sentences(study(2.0, 0.3))
    assert not any("No setting matters" in sentence for sentence in sentences)
    assert "The others are not distinguishable from it after 8 blocks." in sentences[0]


def test_no_surface_no_section(granularity: Results) -> None:
    assert surface_sections(granularity, result_labels(granularity)) == ()


def test_one_factor_has_a_curve_with_the_best_marked() -> None:
    factor = Factor(name="a", levels=("1", "2", "4", "8", "16"), baseline="1")

    def draw(at: dict[str, str], random: np.random.Generator) -> dict[str, float]:
        return {"elapsed": (3 - (at["a"] == "4")) * math.exp(random.normal(0, 1e-3))}

    results = simulate(Simulated((factor,), (ELAPSED,), (ELAPSED,), draw, blocks=5))
    assert "Every other level is worse." in surface_sentences(results)[0]
    plot = surface_curves(view(results, "elapsed"), 0, "p")
    assert plot is not None
    (star,) = (t for t in checked(plot).to_plotly_json()["data"] if t.get("marker", {}).get("symbol") == "star")
    assert star["x"] == [pytest.approx(math.log10(4))]
    assert plot.legend[0].text == "best: 4"
    assert surface_map(view(results, "elapsed"), "p") is None

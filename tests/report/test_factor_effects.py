"""Effects of factors in the report: tables, the Pareto chart, interactions."""

from __future__ import annotations

import io
import math
import re

import numpy as np
import pytest
from rich.console import Console
from tests.report.plotted import checked
from tests.report.simulated import ELAPSED, Simulated, simulate

from ajuste.analysis.factor_effects import factor_effects
from ajuste.model.explained import EXPLAINED
from ajuste.model.results import Results
from ajuste.model.surface import SURFACES
from ajuste.model.trial import Configuration, Factor, Slot, Trial
from ajuste.model.verdict import CELLS, EFFECTS
from ajuste.report.document import Table, Verdicts
from ajuste.report.format import result_labels
from ajuste.report.headline import headlines
from ajuste.report.html import render_html
from ajuste.report.plots.factor_effects import interaction_plots, pareto_plots
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report
from ajuste.report.verdicts import effect_name, metric_effects

HOSTILE = "</script><img src=x onerror=alert(1)>"


def with_effects(results: Results, *, screening: bool = False) -> Results:
    """``results`` with what the analysis says of its factors."""
    configurations = [Configuration(name=c.name, levels=c.levels, baseline=c.baseline) for c in results.configurations]
    trials = [
        Trial(
            slot=Slot(
                block=p.block, position=p.position, configuration=p.configuration, seed=p.seed, warm_up=p.warm_up
            ),
            attempt=p.attempt,
            status=p.status,  # type: ignore[arg-type]
            metrics=p.metrics,
        )
        for p in results.trials
    ]
    deciding = [m for m in results.metrics if any(v.deciding and v.metric == m.name for v in results.verdicts)]
    computed = factor_effects(
        results.factors, configurations, trials, deciding, confidence=0.95, smallest_effect=0.05, screening=False
    )
    effects = tuple(e.model_copy(update={"deciding": screening}) for e in computed.findings)
    verdicts = tuple(v.model_copy(update={"deciding": v.deciding and not screening}) for v in results.verdicts)
    update = {
        "effects": effects,
        "cells": computed.cells,
        "effects_correction": computed.correction,
        "verdicts": verdicts,
    }
    return results.model_copy(update=update)


@pytest.fixture
def factorial(grid: Results) -> Results:
    return with_effects(grid)


@pytest.fixture
def screened(grid: Results) -> Results:
    return with_effects(grid, screening=True)


def printed(results: Results, width: int = 100) -> str:
    out = io.StringIO()
    print_report(results_report(results), Console(file=out, width=width), verbose=True)
    return out.getvalue()


def test_the_terminal_has_main_effects_from_the_largest_to_the_smallest(factorial: Results) -> None:
    squeezed = re.sub(r"\s", "", printed(factorial))
    mains = [e for e in EFFECTS.of(factorial) if e.kind == "main" and e.estimate]
    ranked = sorted(mains, key=lambda e: max(e.estimate or 1, 1 / (e.estimate or 1)), reverse=True)
    labels = result_labels(factorial)
    names = [effect_name(effect, labels) for effect in ranked]
    places = [squeezed.index(re.sub(r"\s", "", name)) for name in names]
    assert places == sorted(places)
    assert squeezed.count("undecided") > 0


def test_nothing_is_wider_than_the_terminal(factorial: Results) -> None:
    out = io.StringIO()
    print_report(results_report(factorial), Console(file=out, width=40), verbose=True)
    to_be_copied = ("apply", "again")
    assert max(len(line) for line in out.getvalue().splitlines() if not line.startswith(to_be_copied)) <= 40


def test_a_screening_tells_effects_and_not_its_configurations(screened: Results) -> None:
    text = printed(screened)
    assert "What each factor does" in text
    assert "\nVerdicts\n" not in text
    report = results_report(screened)
    assert report.section("verdicts-section") is None
    effects = report.section("effects")
    assert effects is not None
    (table,) = (block for block in effects.blocks if isinstance(block, Table))
    assert table.size == len(EFFECTS.of(screened))
    (counts,) = (block for block in report.lead if isinstance(block, Verdicts))
    ((_, badges),) = counts.counts
    assert {badge.word for badge in badges} == {e.verdict for e in EFFECTS.of(screened)}


def test_the_chart_has_the_largest_effect_on_top_with_its_interval_and_the_zone(screened: Results) -> None:
    metric = next(m for m in screened.metrics if m.name == EFFECTS.of(screened)[0].metric)
    (plot,) = pareto_plots(screened, metric, result_labels(screened), "p")
    drawn = checked(plot).to_dict()
    points = [t for t in drawn["data"] if t["mode"] == "markers"]
    bars = [t for t in drawn["data"] if t["mode"] == "lines" and t["line"]["width"] > 5]
    intervals = [t for t in drawn["data"] if t["mode"] == "lines" and t["line"]["width"] <= 5]
    assert len(points) == len(bars) == len(intervals) == min(30, len(EFFECTS.of(screened)))
    top = max(points, key=lambda t: t["y"][0])["x"][0]
    largest = max((e.estimate for e in EFFECTS.of(screened) if e.estimate), key=lambda v: max(v, 1 / v))
    assert top in (pytest.approx(largest), pytest.approx(100 * (largest - 1)))
    for bar, interval, point in zip(bars, intervals, points, strict=True):
        assert bar["x"][1] == point["x"][0]
        assert interval["x"][0] <= point["x"][0] <= interval["x"][1]
    zone = next(shape for shape in drawn["layout"]["shapes"] if shape["type"] == "rect")
    assert zone["x0"] < bars[0]["x"][0] < zone["x1"]


def test_interactions_are_lines_through_the_cells_with_their_intervals(factorial: Results) -> None:
    metric = next(m for m in factorial.metrics if m.name == EFFECTS.of(factorial)[0].metric)
    (plot,) = interaction_plots(factorial, metric, result_labels(factorial), "i")
    first, second = factorial.factors
    assert len(checked(plot).data) == min(len(first.levels), len(second.levels))
    assert sum(len(line.y) for line in checked(plot).data) == len(CELLS.of(factorial))
    estimates = sorted(cell.estimate for cell in CELLS.of(factorial) if cell.estimate)
    drawn = sorted(y for line in checked(plot).data for y in line.y)
    assert drawn in (pytest.approx(estimates), pytest.approx([100 * (v - 1) for v in estimates]))


def test_the_names_of_factors_are_text_in_html(grid: Results) -> None:
    renamed = {grid.factors[0].name: HOSTILE, grid.factors[1].name: "b"}
    hostile = grid.model_copy(
        update={
            "factors": tuple(Factor(name=renamed[f.name], levels=f.levels, baseline=f.baseline) for f in grid.factors),
            "configurations": tuple(
                c.model_copy(update={"levels": {renamed[n]: x for n, x in c.levels.items()}, "read_back": {}})
                for c in grid.configurations
            ),
            "surfaces": tuple(
                surface.model_copy(
                    update={
                        "axes": tuple(a.model_copy(update={"factor": renamed[a.factor]}) for a in surface.axes),
                        "curves": tuple(
                            c.model_copy(
                                update={
                                    "along": renamed[c.along],
                                    "fixed": {renamed[n]: x for n, x in c.fixed.items()},
                                }
                            )
                            for c in surface.curves
                        ),
                    }
                )
                for surface in SURFACES.of(grid)
            ),
        }
    )
    text = render_html(results_report(with_effects(hostile)))
    assert HOSTILE not in text
    assert "<img" not in text
    assert "What each factor does" in text


def test_a_factor_may_be_settled_where_no_single_configuration_is(factorial: Results) -> None:
    undecided = [verdict.model_copy(update={"verdict": "undecided"}) for verdict in factorial.verdicts]
    results = factorial.model_copy(update={"verdicts": tuple(undecided), "clock": "wall"})
    sentence = headlines(results, result_labels(results))[0].sentence
    assert sentence.startswith("Use ")
    assert " on average over " in sentence
    effects = [
        effect.model_copy(update={"verdict": "undecided"}) if effect.kind == "main" else effect
        for effect in EFFECTS.of(results)
    ]
    sentence = headlines(results.model_copy(update={"effects": tuple(effects)}), result_labels(results))[0].sentence
    assert " on average over " not in sentence


def test_the_figures_of_an_average_effect_give_its_percentage() -> None:
    times = {"aa": 0.0865, "ab": 0.0822, "ba": 0.1582, "bb": 0.081}
    factors = tuple(Factor(name=name, levels=("a", "b"), baseline="a") for name in ("first", "second"))

    def draw(levels: dict[str, str], random: np.random.Generator) -> dict[str, float]:
        return {"elapsed": times[levels["first"] + levels["second"]] * math.exp(random.normal(0, 0.0001))}

    results = with_effects(simulate(Simulated(factors, (ELAPSED,), (ELAPSED,), draw, blocks=8)))
    undecided = [verdict.model_copy(update={"verdict": "undecided"}) for verdict in results.verdicts]
    results = results.model_copy(update={"verdicts": tuple(undecided), "clock": "wall"})
    sentence = headlines(results, result_labels(results))[0].sentence
    assert sentence == "Use second = b: it cuts elapsed time from 117 ms to 81.6 ms on average over first a and b."
    (effect,) = (each for each in EFFECTS.of(results) if each.kind == "main" and each.factors == ("second",))
    assert effect.effect == "−30.2 %"
    # The configurations' own figures are of other blocks, where trials were left out.
    assert effect.estimate is not None
    shifted = effect.model_copy(update={"estimate": effect.estimate * 1.1})
    effects = tuple(shifted if each == effect else each for each in EFFECTS.of(results))
    results = results.model_copy(update={"effects": effects})
    sentence = headlines(results, result_labels(results))[0].sentence
    assert " from 117 ms to 89.8 ms on average over " in sentence


def test_where_a_factor_is_a_condition_the_setting_alone_is_recommended(factorial: Results) -> None:
    setting, condition = factorial.factors
    explained = [
        factor.model_copy(update={"condition": factor.name == condition.name}) for factor in EXPLAINED.of(factorial)
    ]
    results = factorial.model_copy(update={"explained": tuple(explained), "clock": "wall"})
    effects = [
        effect
        for effect in metric_effects(results, results.metrics[0].name)
        if effect.kind == "main" and effect.factors[0] == setting.name
    ]
    best = max((effect for effect in effects if effect.verdict == "improves"), key=lambda effect: effect.size)
    sentence = headlines(results, result_labels(results))[0].sentence
    assert sentence.startswith(
        f"Use {setting.name} = {result_labels(results).level(setting.name, best.levels[0])}: it cuts "
    )
    assert sentence.endswith(f" on average over 5 levels of {condition.name}.")

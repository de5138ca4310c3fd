"""Excerpts that a report shows of results that are too many."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from ajuste.model.results import Results, Tally
from ajuste.report import trials as module
from ajuste.report.html import render_html
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report
from ajuste.report.trials import CHOSEN, MOST_CONFIGURATIONS, make_excerpt


def test_few_are_shown_as_they_are(grid: Results) -> None:
    excerpt = make_excerpt(grid)
    assert excerpt.results is grid
    assert excerpt.remark == ""


def test_of_many_configurations_the_baseline_and_both_ends_are_shown(crowded: Results) -> None:
    excerpt = make_excerpt(crowded)
    names = [configuration.name for configuration in excerpt.results.configurations]
    assert len(crowded.configurations) > MOST_CONFIGURATIONS
    assert names == [f"knob={level}" for level in (*range(1, 22), *range(81, 101))]
    assert len(names) == CHOSEN + 1
    assert {trial.configuration for trial in excerpt.results.trials} == set(names)
    assert excerpt.remark.startswith("Of 100 configurations the baseline and the 40 that differ most are shown")


def test_of_many_trials_whole_blocks_are_drawn(crowded: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TRIALS", 82)
    assert {trial.block for trial in make_excerpt(crowded).results.trials} == {0, 2}


def test_the_report_says_what_it_does_not_show(crowded: Results) -> None:
    counted = crowded.model_copy(
        update={"tally": Tally(trials=5_000, clean=4_900, warm_up=0, flagged=100, failed=0, reasons={"busy": 100})}
    )
    page = render_html(results_report(counted))
    assert "Of 100 configurations the baseline and the 40 that differ most are shown one by one" in page
    assert "Of 5,000 trials 123 are drawn; every figure uses all of them." in page
    assert "and 100 more that were flagged or failed" in page
    assert "worsens 99 of 99" in page
    out = StringIO()
    print_report(results_report(counted), Console(file=out, width=200))
    output = out.getvalue()
    assert "100 configurations · 3 blocks · 5,000 trials" in output
    assert "Of 100 configurations the baseline and the 40" in output
    assert "100 of 5,000 trials left out: busy." in output

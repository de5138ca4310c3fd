"""Runs side by side as a page."""

from __future__ import annotations

from ajuste.model.results import Measured
from ajuste.report.side_by_side import side_by_side
from ajuste_lab.pages.side_by_side import side_by_side_report
from verdicts import decided


def test_runs_of_one_configuration_have_no_effects_and_it_says_why() -> None:
    run = decided(configurations=(Measured(name="as it is", levels={}, baseline=True),))
    page = side_by_side_report(side_by_side([run, run]))
    assert "each run has one configuration" in str(page.sections[0])

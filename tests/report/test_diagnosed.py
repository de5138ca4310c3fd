"""Noise and its defects, on the page and in the terminal."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from tests.report.plotted import checked

from ajuste.model.diagnostic import Course, Diagnostic, Diagnostics, Naive
from ajuste.model.results import Results
from ajuste.report.document import Paragraph, Subsection, Table
from ajuste.report.html import render_html
from ajuste.report.method import matters, noise_sections
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report


def diagnostic(kind: Any, metric: str, **more: Any) -> Diagnostic:
    fields = {
        "kind": kind,
        "metric": metric,
        "measures": "something",
        "value": 0.1,
        "present": True,
        "matters": True,
        "says": f"There is <b>{kind}</b>.",
        "naive_error": 0.23,
        "why": "Blocks take it out.",
    }
    return Diagnostic.model_validate(fields | more)


@pytest.fixture
def noisy(grid: Results) -> Results:
    metric = grid.metrics[0].name
    diagnostics = Diagnostics(
        level=0.05,
        found=(
            diagnostic("outliers", metric, matters=False, naive_error=0.02),
            diagnostic("drift", metric),
            diagnostic("bimodality", metric, naive_error=0.05),
            diagnostic("order", metric, present=False, matters=False, says="No problems found."),
        ),
        naive=(Naive(metric=metric, batch=10, windows=99, error=0.23, narrowing=2.0, says="Batches mislead."),),
        courses=(Course(metric=metric, scale="ratio", blocks=(0, 1, 2), values=(0.99, 1.0, 1.01)),),
    )
    return grid.model_copy(update={"diagnostics": diagnostics})


def test_what_matters_stands_first_and_what_is_absent_is_named(noisy: Results) -> None:
    _, section = noise_sections(noisy)
    (subsection,) = (block for block in section.blocks if isinstance(block, Subsection))
    (table,) = (block for block in subsection.blocks if isinstance(block, Table))
    assert [(row.cells[0], row.cells[2], row.marked) for row in table.groups[0].rows] == [
        ("Drift", "23 %", True),
        ("Bimodality", "5.0 %", True),
        ("Outliers", "2.0 %", False),
    ]
    paragraphs = [block.text for block in subsection.blocks if isinstance(block, Paragraph)]
    assert paragraphs == ["Batches mislead.", "Checked and not found: order."]


def test_the_error_of_a_naive_test_is_told_where_it_is_news(noisy: Results) -> None:
    drift, bimodality = matters(noisy)
    assert "a t test on two batches is wrong in 23 % of cases instead of 5 %. Blocks take it out." in drift
    assert "t test" not in bimodality


def test_page_and_terminal_tell_it(noisy: Results) -> None:
    page = render_html(results_report(noisy))
    assert "There is &lt;b&gt;drift&lt;/b&gt;." in page
    assert "There is <b>" not in page.partition('<script type="application/json"')[0]
    assert "Checked and not found: order." in page
    course = next(picture for picture in results_report(noisy).pictures if picture.plot.name.startswith("course-"))
    assert list(checked(course.plot).data[0].y) == pytest.approx([-1, 0, 1])
    out = StringIO()
    print_report(results_report(noisy), Console(file=out, width=120), verbose=True)
    assert "Noise: Drift" in out.getvalue()


def test_without_diagnostics_nothing_is_said(grid: Results) -> None:
    assert matters(grid) == []
    assert noise_sections(grid) == ()
    assert 'id="diagnostics"' not in render_html(results_report(grid))

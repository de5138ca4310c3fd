"""The page of a class, looked at in a browser: it fits, and names and answers stay text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from packages.course.tests.cheating import LIGHT

from ajuste.report.html import write_report
from ajuste_course.class_report import class_report
from ajuste_course.evidence import Finding
from ajuste_course.figures import Predicted
from ajuste_course.marking import Mark, Marked
from ajuste_course.sheet import read_sheet
from ajuste_course.workbook import read_prediction

HOSTILE = '<script>document.title = "owned"</script><img src=x onerror=alert(1)>'


def marked(number: int, **changes: Any) -> Marked:
    marks = (
        Mark("switches", "made", 2.0, 2.0),
        Mark("mean", "right" if number % 3 else "wrong", 3.0 if number % 3 else 0.0, 3.0, "5", "5"),
        Mark("turn", "wrong", 0.0, 2.0, HOSTILE, "4.1"),
        Mark("verdict", "right", 2.0, 2.0),
        Mark("why", "to mark", None, 1.0, HOSTILE),
    )
    prediction = read_prediction("falls", f"{10 + number}%", "longer turns mean fewer")
    return Marked(
        **{
            "file": f"{number}.ajuste",
            "student": f"100{number}",
            "marks": marks,
            "predictions": {"switches": (prediction, Predicted(True, number % 2 == 0, 0.5))},
            **changes,
        }
    )


CLASS = [
    *(marked(number) for number in range(40)),
    marked(41, student=HOSTILE[:60], findings=(Finding("proof", f"figures were changed: {HOSTILE} {'x' * 200}"),)),
    Marked("a-long-name-" * 10 + ".ajuste", problem=HOSTILE),
]


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1400, "light")])
def test_the_page_of_a_class_fits_and_runs_nothing_foreign(
    browser: Any, tmp_path: Path, width: int, theme: str
) -> None:
    write_report(class_report(read_sheet(LIGHT), CLASS), tmp_path / "class.html")
    messages: list[str] = []
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page = context.new_page()
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("dialog", lambda dialog: (messages.append(dialog.message), dialog.dismiss()))  # type: ignore[func-returns-value]
    page.goto((tmp_path / "class.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert "A light sheet" in page.title()
    assert page.locator("text=1007").count() >= 1
    assert page.evaluate("document.querySelectorAll('img[src=x]').length") == 0
    context.close()
    assert messages == []


def test_the_headline_counts_what_is_accepted() -> None:
    report = class_report(read_sheet(LIGHT), CLASS)
    assert "42 hand-ins: 2 not accepted" in report.headline
    assert "7 of 10 points" in report.headline
    assert {section.name for section in report.sections} >= {"points", "questions", "prediction-switches", "findings"}


def test_a_class_without_anybody_accepted_has_a_page(tmp_path: Path) -> None:
    for every in ([], [Marked("x.ajuste", problem="is half")], [marked(1, predictions={}, marks=())]):
        write_report(class_report(read_sheet(LIGHT), every), tmp_path / f"{len(list(tmp_path.iterdir()))}.html")
    assert len(list(tmp_path.glob("*.html"))) == 3

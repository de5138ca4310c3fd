"""Suites in every format; hostile text stays text."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Results, Summary
from ajuste.model.trial import Factor
from ajuste.model.verdict import Verdict
from ajuste.report.console import Console
from ajuste.report.html import render_html
from ajuste.report.markdown import markdown
from ajuste.report.terminal import print_report
from ajuste_ci.suite.model import SuiteEntry, SuiteRecord, SuiteResult
from ajuste_ci.suite.report import suite_mail, suite_report
from ajuste_ci.suite.result import suite_result
from ajuste_stats.terms import Direction, Word

HOSTILE = "<script>alert(1)</script>\x1b[2J"


def member(run: str, direction: Direction, words: dict[str, Word], ratio: float = 1.2) -> Results:
    """Kernels b and c against a."""
    summary = Summary(n=5, mean=0.5, median=0.5, sd=0.05, sem=0.02, minimum=0.4, maximum=0.6)
    verdicts = tuple(
        Verdict(
            configuration=name,
            metric="time",
            unit="s",
            direction=direction,
            scale="ratio",
            verdict=word,
            estimate=ratio,
            low=ratio - 0.1,
            high=ratio + 0.1,
            level=0.99,
            blocks=5,
            reason="",
        )
        for name, word in words.items()
    )
    return Results(
        study="s",
        title="",
        question="",
        answer="",
        run=run,
        seed=1,
        clock="virtual",
        digest="d",
        stopped="budget",
        stopped_because="",
        level=0.99,
        smallest_effect=0.02,
        correction="",
        blocks=5,
        verdicts=verdicts,
        configurations=tuple(
            Measured(name=name, levels={"kernel": name}, baseline=name == "a", metrics={"time": summary})
            for name in ("a", *words)
        ),
        factors=(Factor(name="kernel", levels=("a", *words), baseline="a"),),
        metrics=(Metric(name="time", title="Time", unit="s", direction=direction, what=""),),
        trials=(),
        reproduce=("ajuste suite x --kernel a,b",),
    )


def result(*, title: str = "Messages", reason: str = "program stress-ng not found") -> SuiteResult:
    members = {
        "one": member("r1", "lower", {"b": "worsens", "c": "equivalent"}),
        "two": member("r2", "lower", {"b": "undecided", "c": "equivalent"}, ratio=1.0),
        "three": member("r3", "higher", {"b": "improves", "c": "improves"}),
    }
    entries = [SuiteEntry(name=name, run=measured.run) for name, measured in members.items()]
    entries.append(SuiteEntry(name="gone", reason=reason))
    record = SuiteRecord(
        id="suite-x-1",
        name="x",
        title=title,
        question="",
        named="",
        created="",
        level=0.95,
        finished=True,
        entries=tuple(entries),
    )
    return suite_result(record, members)


def printed(suite: SuiteResult, *, verbose: bool = False, width: int = 80) -> str:
    out = io.StringIO()
    print_report(suite_report(suite), Console(file=out, width=width), verbose=verbose)
    return out.getvalue()


def test_the_table_has_a_row_for_each_member_and_each_mean() -> None:
    lines = printed(result()).splitlines()
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in lines if line.startswith("  ")}
    assert rows["one"] == "500 ms +20 % worsens +20 % equivalent"
    assert rows["three"] == "500 ms +20 % improves +20 % improves"
    assert rows["mean"].startswith("(lower) +9.54 %")
    assert "(higher)" not in printed(result()), "a mean of one member is none"


def test_the_answer_counts_the_verdicts_of_each_configuration() -> None:
    output = " ".join(printed(result()).split())
    assert output.startswith("In emulation, kernel = b: of 3 members 1 improves, 1 worsens and 1 is undecided.")
    assert "kernel = c: of 3 members 1 improves and 2 are equivalent." in output
    assert "The geometric mean changes by +9.54 % (" in output
    assert "95 % intervals for all 6 comparisons together." in output


def test_no_mean_includes_a_change_of_more_than_ten_times() -> None:
    words: dict[str, Word] = {"b": "worsens"}
    members = {
        "one": member("r1", "lower", words),
        "two": member("r2", "lower", words),
        "far": member("r3", "lower", words, ratio=399.0),
    }
    entries = tuple(SuiteEntry(name=name, run=measured.run) for name, measured in members.items())
    whole = result()
    record = SuiteRecord(
        id=whole.id, name="x", title="", question="", named="", created="", level=0.95, finished=True, entries=entries
    )
    suite = suite_result(record, members)
    assert suite.means == ()
    output = " ".join(printed(suite).split())
    assert "×399" in output
    assert "No geometric mean includes a change of more than 10 times: far." in output
    assert "39,8" not in suite_mail(suite)
    assert "39800" not in suite_mail(suite)


def test_what_was_left_out_and_what_is_in_no_mean_is_said() -> None:
    output = " ".join(printed(result()).split())
    assert "Left out: gone: program stress-ng not found." in output
    assert "Not in a geometric mean: three." in output


def test_intervals_are_details() -> None:
    assert "+10 % to +30 %" not in printed(result())
    assert "+10 % to +30 %" in printed(result(), verbose=True, width=100)


def test_an_interrupted_suite_says_so() -> None:
    partial = result().model_copy(update={"state": "partial"})
    assert "run the same command again to resume" in " ".join(printed(partial).split())


def test_a_mail_has_tables_of_at_most_72_columns_in_ascii() -> None:
    text = suite_mail(result())
    assert text.isascii()
    assert all(len(line) <= 72 for line in text.splitlines())
    assert "Case:                   A[pct imp](CV)        B[pct imp](CV)  verdict" in text
    assert text.count("Interpretation: Lower is better") == text.count("Interpretation: Higher is better") == 1
    assert "marks a certain" not in text, "no figure is marked"
    assert "ajuste suite x --kernel a,b" in text


def test_the_page_has_links_to_the_reports_of_the_members() -> None:
    page = render_html(suite_report(result(), Path("/data/reports"), Path("/data/mine/page.html")))
    assert '<a href="../reports/r1.html">one</a>' in page
    assert page.count('href="../reports/') == 3


@pytest.mark.parametrize("where", ["title", "reason"])
def test_hostile_text_stays_text(where: str) -> None:
    suite = result(**{where: HOSTILE})
    assert "<script>alert" not in render_html(suite_report(suite))
    assert "\x1b[2J" not in printed(suite)
    assert "\x1b" not in suite_mail(suite)
    assert "<script>" not in markdown(suite_report(suite))

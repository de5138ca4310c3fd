"""Gates in every format; hostile text stays text."""

from __future__ import annotations

import io
import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.report.console import Console
from ajuste.report.markdown import markdown
from ajuste.report.terminal import print_report
from ajuste_ci.model import (
    GateFigure,
    GateResult,
    GateRevision,
    GrownCall,
    GrownFunction,
    NoopFigure,
    NoopResult,
    worst,
)
from ajuste_ci.report import badge, figure_sentence, gate_report, github, gitlab, headline, junit, noop_report

FIGURE = GateFigure(
    name="job",
    metric="instructions",
    verdict="regression",
    base=1000.0,
    head=1020.0,
    estimate=1.02,
    low=1.019,
    high=1.021,
    limit=0.01,
    run="r1",
    line=7,
    functions=(GrownFunction(name="grown", more=19, of=20), GrownFunction(name="other", more=1, of=20)),
    calls=(GrownCall(name="fsync", base=1, head=2000),),
)


def figure(**changes: Any) -> GateFigure:
    return FIGURE.model_copy(update=changes)


def result(*figures: GateFigure, file: str = "ajuste.toml") -> GateResult:
    return GateResult(
        result=worst(figures),
        file=file,
        base=GateRevision(revision="main", commit="1" * 40),
        head=GateRevision(revision="", commit="2" * 40),
        benchmarks=figures,
    )


PASSED = figure(verdict="pass", functions=())
OPEN = figure(name="noise", verdict="undecided", functions=(), reason="reached the limit of 3 blocks")
FAILED = figure(name="broken", verdict="failed", base=None, head=None, estimate=None, low=None, high=None,
                functions=(), reason="main does not build\nall of it")  # fmt: skip


@pytest.mark.parametrize(
    ("figures", "word", "code", "lenient", "sentence"),
    [
        ((PASSED, PASSED), "pass", 0, 0, "No regression: 2 figures within the limit."),
        ((PASSED, FIGURE, OPEN), "regression", 3, 3, "Regression in job: instructions +2 %, limit 1 %."),
        ((FIGURE, FIGURE), "regression", 3, 3, "2 regressions: job instructions +2 % and job instructions +2 %."),
        ((PASSED, OPEN), "undecided", 4, 0, "Undecided: whether noise got worse by more than the limit."),
        ((PASSED, FAILED, OPEN), "failed", 1, 1, "1 benchmark could not be measured: broken."),
        (
            (FIGURE, FAILED),
            "regression",
            3,
            3,
            "Regression in job: instructions +2 %, limit 1 %. 1 benchmark could not be measured: broken.",
        ),
    ],
)
def test_the_worst_figure_decides(
    figures: tuple[GateFigure, ...], word: str, code: int, lenient: int, sentence: str
) -> None:
    gate = result(*figures)
    assert (gate.result, gate.exit_code("fail"), gate.exit_code("pass"), headline(gate)) == (
        word,
        code,
        lenient,
        sentence,
    )


def test_a_regression_is_told_with_interval_limit_and_cause() -> None:
    assert figure_sentence(FIGURE) == (
        "instructions +2 % (+1.9 % to +2.1 %), limit 1 %. grown carries out 19 more instructions (95 % of the growth); "
        "then other (+1). fsync is called 2,000 times instead of 1."
    )
    out = io.StringIO()
    print_report(gate_report(result(FIGURE, FAILED)), Console(file=out, width=110))
    lines = out.getvalue().splitlines()
    assert lines[2].split() == ["Benchmark", "Metric", "Base", "Head", "Change", "Interval", "Limit", "Verdict"]
    assert lines[3].split()[:4] == ["job", "instructions", "1,000", "1,020"]
    assert "broken: main does not build" in lines
    assert lines[-1] == "more  ajuste report r1"


def test_junit_counts_what_it_shows() -> None:
    suite = ElementTree.fromstring(junit(result(PASSED, FIGURE, OPEN, FAILED), "fail"))
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["4", "2", "1", "0"]
    assert [[child.tag for child in case] for case in suite.iter("testcase")] == [
        [],
        ["failure"],
        ["failure"],
        ["error"],
    ]
    lenient = ElementTree.fromstring(junit(result(OPEN), "pass"))
    assert [lenient.get(name) for name in ("failures", "skipped")] == ["0", "1"]
    assert lenient.find(".//skipped") is not None


def test_annotations_name_file_and_line_and_nothing_of_what_passed() -> None:
    lines = list(github(result(PASSED, FIGURE, OPEN), "pass"))
    assert [line.partition(" ")[0] for line in lines] == ["::error", "::warning"]
    assert lines[0].startswith(
        "::error file=ajuste.toml,line=7,title=Performance regression%3A job::instructions +2 %25 ("
    )
    issues = json.loads(gitlab(result(PASSED, FIGURE, OPEN), "pass"))
    assert [(issue["severity"], issue["location"]["lines"]["begin"]) for issue in issues] == [
        ("major", 7),
        ("minor", 7),
    ]
    assert len({issue["fingerprint"] for issue in issues}) == 2
    assert json.loads(gitlab(result(PASSED), "fail")) == []


@pytest.mark.parametrize(
    ("figures", "words"), [((PASSED,), "pass"), ((FIGURE, FIGURE), "2 regressions"), ((FAILED,), "failed")]
)
def test_a_badge_says_the_result_in_words(figures: tuple[GateFigure, ...], words: str) -> None:
    texts = [
        element.text
        for element in ElementTree.fromstring(badge(result(*figures))).iter()
        if element.tag.endswith("}text")
    ]
    assert texts == ["ajuste gate", words]


HOSTILE = st.text(max_size=40) | st.sampled_from(
    (
        "]]>",
        "<script>",
        "a\n::error::b",
        "%0A::set-output name=x::y",
        "| a | b |",
        "\x1b[2J",
        "\ud800",
        "\ufffe",
        "&amp;",
    )
)


@given(HOSTILE, HOSTILE, HOSTILE, st.sampled_from(("regression", "undecided", "failed")))
def test_hostile_text_stays_text(metric: str, reason: str, function: str, verdict: Any) -> None:
    grown = (GrownFunction(name=function, more=1, of=1),)
    gate = result(figure(metric=metric, reason=reason, verdict=verdict, functions=grown), file=f"{metric}/ajuste.toml")
    suite = ElementTree.fromstring(junit(gate, "fail").encode())
    assert [element.tag for element in suite.iter()][:3] == ["testsuites", "testsuite", "testcase"]
    assert len(list(suite.iter())) == 4
    (line,) = github(gate, "fail")
    assert "\n" not in line
    assert "\r" not in line
    properties = re.match(r"::error file=([^,:]*),line=7,title=([^,:]*)::", line)
    assert properties is not None
    assert len(json.loads(gitlab(gate, "fail"))) == 1
    page = markdown(gate_report(gate))
    assert not re.search(r"(?<!\\)<", page)
    assert len([line for line in page.splitlines() if line.startswith("| job")]) == 1
    assert "\x1b" not in page + line + gitlab(gate, "fail") + junit(gate, "fail")


def test_a_revision_against_itself_is_told_by_its_worst_benchmark() -> None:
    fine = NoopFigure(name="job", metric="took", limit=0.01, runs=20, changed=1, low=0.009, high=0.236, largest=1.002)
    bad = fine.model_copy(update={"name": "other", "changed": 9, "too_often": True})
    revision = GateRevision(revision="", commit="2" * 40)

    def reported(*figures: NoopFigure) -> tuple[int, str]:
        noop = NoopResult(file="ajuste.toml", revision=revision, promised=0.05, benchmarks=figures)
        return noop.exit_code, markdown(noop_report(noop))

    code, text = reported(fine)
    assert (code, "0.9 % to 23.6 %" in text) == (0, True)
    assert "Of 20 comparisons of one revision with itself, 1 calls it changed" in text
    code, text = reported(fine, bad)
    assert (code, "9 of 20 runs of one revision against itself call it changed" in text) == (3, True)
    code, text = reported(fine, NoopFigure(name="broken", metric="took", limit=0.01, reason="it does not build\nmore"))
    assert (code, "1 benchmark could not be measured: broken" in text, "\nmore" in text) == (1, True, False)

"""Report of a gate: for people as a sentence and tables; for programs as JUnit XML, annotations and a badge.

Names and messages come from project files and builds and are not trusted: every format escapes them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final, get_args
from xml.etree.ElementTree import Element, SubElement, tostring

from ajuste.model.wording import (
    amount,
    change,
    count_of,
    first_few,
    listed,
    number,
    percent,
    shortened,
    visible,
    visible_line,
)
from ajuste.report.document import Badge, Block, Column, CommandBlock, Item, Listing, Report, Row, Section, Table
from ajuste.report.expectations import junit_text
from ajuste_ci.model import QUIET, GateFigure, GateResult, GateWord, NoopFigure, NoopResult, Policy, ProjectCommit
from ajuste_stats.terms import Word

LOOKS: Final[dict[GateWord, tuple[Word, str]]] = {
    "pass": ("equivalent", "✓"),
    "regression": ("worsens", "✗"),
    "undecided": ("undecided", "?"),
    "failed": ("worsens", "!"),
    "new": ("equivalent", "+"),
    "removed": ("equivalent", "-"),
}
"""The colour of each verdict, by the word of a comparison that has it, and its sign."""

_MOST_NAMED: Final = 3
_COLUMNS: Final = (
    Column("Benchmark", figure=False),
    Column("Metric", figure=False),
    Column("Base"),
    Column("Head"),
    Column("Change"),
    Column("Interval", optional=True),
    Column("Limit"),
    Column("Verdict", figure=False),
)


def gate_report(result: GateResult) -> Report:
    """Return the answer, a row for each figure, and more on what did not pass."""
    rows = tuple(map(_row, result.benchmarks))
    table = Table.of(_COLUMNS, rows, name="benchmarks")
    about = f"{result.base.label} → {result.head.label}"
    sections = (Section("", (table, *_open_blocks(result))),)
    return Report(title="Gate", headline=headline(result), question=about, sections=sections, stem="gate")


def headline(result: GateResult) -> str:
    """Return the answer in one sentence, and another if benchmarks could not be measured."""
    failed = result.having("failed")
    count = len({figure.name for figure in failed})
    broken = f"{count_of(count, 'benchmark')} could not be measured: {_names(failed)}."
    worse = result.having("regression")
    if failed:
        return f"{_regressions(worse)} {broken}" if worse else broken
    if worse:
        return _regressions(worse)
    if unknown := result.having("undecided"):
        return f"Undecided: whether {_names(unknown)} got worse by more than the limit."
    met = [figure for figure in result.benchmarks if figure.expected]
    within = len(result.having("pass")) - len(met)
    parts = [f"{count_of(within, 'figure')} within the limit"] if within else []
    parts += [f"{count_of(len(met), 'expectation')} met"] if met else []
    parts += [count_of(len(new), "new benchmark")] if (new := result.having("new")) else []
    parts += [count_of(len(gone), "removed benchmark")] if (gone := result.having("removed")) else []
    return f"No regression: {listed(parts)}."


def _regressions(worse: Sequence[GateFigure]) -> str:
    if len(worse) == 1:
        (only,) = worse
        if only.expected:
            return f"Regression in {only.name}: {_unmet(only)}."
        return f"Regression in {only.name}: {only.metric} {change_text(only)}, limit {percent(only.limit)}."
    parts = [f"{figure.name} {figure.metric} {figure.found or change_text(figure)}" for figure in worse]
    return f"{count_of(len(worse), 'regression')}: {listed(first_few(parts, _MOST_NAMED))}."


def change_text(figure: GateFigure) -> str:
    """Return how much the head differs from the base: ``+12 %``."""
    return "" if figure.estimate is None else change(figure.estimate, figure.scale, figure.unit)


def interval_text(figure: GateFigure) -> str:
    """Return the bounds of the change: ``+10 % to +14 %``; empty without any."""
    if figure.low is None and figure.high is None:
        return ""
    low, high = (change(bound, figure.scale, figure.unit, like=figure.estimate) for bound in (figure.low, figure.high))
    return low if low == high else f"{low} to {high}"


def cause_text(figure: GateFigure) -> str:
    """Return the functions and system calls that make up a regression; empty if they are not known."""
    if not figure.functions:
        return ""
    first, *others = figure.functions
    share = f" ({percent(round(first.more / first.of, 2))} of the growth)" if 0 < first.more <= first.of else ""
    cause = f"{first.name} carries out {number(first.more)} more instructions{share}"
    also = listed([f"{function.name} (+{number(function.more)})" for function in others])
    calls = [f"{call.name} is called {number(call.head)} times instead of {number(call.base)}" for call in figure.calls]
    return f"{cause}{f'; then {also}' if also else ''}.{f' {listed(calls)}.' if calls else ''}"


def figure_sentence(figure: GateFigure) -> str:
    """Return change, interval, limit, cause and culprit of a figure, without its name."""
    if figure.verdict == "failed":
        return figure.reason.partition("\n")[0]
    if figure.expected:
        return f"{_unmet(figure)}."
    interval = f" ({text})" if (text := interval_text(figure)) else ""
    comparison = f"{figure.metric} {change_text(figure)}{interval}, limit {percent(figure.limit)}"
    parts = (comparison, cause_text(figure), culprits_text(figure), figure.reason)
    return " ".join(f"{part.rstrip('.')}." for part in parts if part)


def _unmet(figure: GateFigure) -> str:
    return f"expected {figure.expected}; found {figure.found}"


def culprits_text(figure: GateFigure) -> str:
    """Return the commit that a regression came with; empty if it was not searched for."""
    if not figure.culprits:
        return ""
    first, *others = (commit_words(commit) for commit in figure.culprits)
    return f"It came with {first}" if not others else f"It came with one of {listed([first, *others])}"


def commit_words(commit: ProjectCommit) -> str:
    """Return a commit's short hash and subject, on one line."""
    if not commit.commit:
        return "the changes that are not committed"
    return " ".join(filter(None, (commit.short, shortened(visible_line(commit.subject)))))


def _names(figures: Sequence[GateFigure]) -> str:
    return listed(first_few(dict.fromkeys(figure.name for figure in figures), _MOST_NAMED))


def _row(figure: GateFigure) -> Row:
    word, sign = LOOKS[figure.verdict]
    amounts = ("" if mean is None else amount(mean, figure.unit) for mean in (figure.base, figure.head))
    verdict = Badge(word, sign, figure.verdict)
    if figure.expected:
        return Row((figure.name, figure.metric, "", figure.found, "", "", "", verdict))
    change_and_limit = (change_text(figure), interval_text(figure), percent(figure.limit))
    return Row((figure.name, figure.metric, *amounts, *change_and_limit, verdict))


def _open_blocks(result: GateResult) -> list[Block]:
    open_figures = [figure for figure in result.benchmarks if figure.verdict not in QUIET]
    if not open_figures:
        return []
    items = tuple(Item(figure.name, figure_sentence(figure)) for figure in open_figures)
    runs = tuple(dict.fromkeys(f"ajuste report {figure.run}" for figure in open_figures if figure.run))
    return [Listing(items), *([CommandBlock("more", runs)] if runs else [])]


# A revision against itself: what is called changed there is false.

_NOOP_COLUMNS: Final = (
    Column("Benchmark", figure=False),
    Column("Metric", figure=False),
    Column("Runs"),
    Column("Called changed"),
    Column("Interval", optional=True),
    Column("Regressions"),
    Column("Undecided"),
    Column("Largest difference"),
    Column("Limit", optional=True),
)


def noop_report(result: NoopResult) -> Report:
    """Return the answer and a row for each figure."""
    table = Table.of(_NOOP_COLUMNS, map(_noop_row, result.benchmarks), name="noop")
    items = tuple(Item(figure.name, figure.reason.partition("\n")[0]) for figure in result.benchmarks if figure.reason)
    sections = (Section("", (table, *([Listing(items)] if items else []))),)
    about = f"{result.revision.label} against itself"
    return Report(title="Gate", headline=noop_headline(result), question=about, sections=sections, stem="noop")


def noop_headline(result: NoopResult) -> str:
    """Return the rate of false changes, and what to do if it is too high."""
    often = [figure for figure in result.benchmarks if figure.too_often]
    if often:
        worst = max(often, key=lambda figure: figure.changed / figure.runs)
        return (
            f"{worst.name}: {worst.changed} of {worst.runs} runs of one revision against itself call it changed "
            f"({worst.metric}); {percent(result.promised)} may. Something stays the same within a run, such as code "
            "layout: try `layouts`, or `instructions`."
        )
    failed = [figure.name for figure in result.benchmarks if figure.reason]
    broken = f"{count_of(len(set(failed)), 'benchmark')} could not be measured: {listed(failed)}." if failed else ""
    if not (measured := [figure for figure in result.benchmarks if figure.runs]):
        return broken
    runs, changed = sum(figure.runs for figure in measured), sum(figure.changed for figure in measured)
    calls = "calls" if changed == 1 else "call"
    sentence = f"Of {count_of(runs, 'comparison')} of one revision with itself, {changed or 'none'} {calls} it changed."
    return f"{sentence} {broken}".strip()


def _noop_row(figure: NoopFigure) -> Row:
    if not figure.runs:
        return Row((figure.name, figure.metric, *[""] * 6, percent(figure.limit)))
    share = f"{percent(round(figure.low, 3))} to {percent(round(figure.high, 3))}"
    counts = (number(figure.runs), number(figure.changed), share, number(figure.regressions), number(figure.undecided))
    largest = "" if figure.largest is None else change(figure.largest, figure.scale, figure.unit)
    return Row((figure.name, figure.metric, *counts, largest, percent(figure.limit)))


_TITLES: Final[dict[GateWord, str]] = {
    "regression": "Performance regression",
    "undecided": "Performance undecided",
    "failed": "Benchmark failed",
    "pass": "No performance regression",
    "new": "New benchmark",
    "removed": "Removed benchmark",
}

# JUnit XML: what most CI systems show as tests. Source: https://github.com/testmoapp/junitxml


def junit(result: GateResult, undecided: Policy) -> str:
    """Return JUnit XML, a test for each figure; an undecided one fails, or is skipped if it is to pass."""
    suite = Element("testsuite", name="ajuste gate", tests=str(len(result.benchmarks)))
    counts = {"failures": 0, "errors": 0, "skipped": 0}
    for figure in result.benchmarks:
        case = SubElement(suite, "testcase", classname=visible_line(figure.name), name=visible_line(figure.metric))
        kind = _KINDS[figure.verdict, undecided]
        if kind:
            counts[f"{kind}s" if kind != "skipped" else kind] += 1
            element = SubElement(case, kind, message=visible_line(figure_sentence(figure)))
            if kind != "skipped":
                element.set("type", figure.verdict)
            element.text = visible(figure.reason)
    for name, count in counts.items():
        suite.set(name, str(count))
    return junit_text(suite)


_KINDS: Final[dict[tuple[GateWord, Policy], str]] = {
    **dict.fromkeys(product(QUIET, get_args(Policy)), ""),
    ("regression", "pass"): "failure",
    ("regression", "fail"): "failure",
    ("undecided", "pass"): "skipped",
    ("undecided", "fail"): "failure",
    ("failed", "pass"): "error",
    ("failed", "fail"): "error",
}


# Workflow commands of GitHub Actions.
# Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions


def github(result: GateResult, undecided: Policy) -> Iterator[str]:
    """Yield a line for each figure that did not pass."""
    for figure in result.benchmarks:
        if figure.verdict not in QUIET:
            kind = "warning" if figure.verdict == "undecided" and undecided == "pass" else "error"
            title = f"{_TITLES[figure.verdict]}: {figure.name}"
            line = f",line={figure.line}" if figure.line else ""
            message = _data(figure_sentence(figure))
            yield f"::{kind} file={_property(result.file)}{line},title={_property(title)}::{message}"


def _data(text: str) -> str:
    return visible_line(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# The code quality report of GitLab. Source: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format


def gitlab(result: GateResult, undecided: Policy) -> str:
    """Return a JSON document with each figure that did not pass."""
    issues = [_issue(result, figure, undecided) for figure in result.benchmarks if figure.verdict not in QUIET]
    return json.dumps(issues, indent=2, ensure_ascii=True)


def _issue(result: GateResult, figure: GateFigure, undecided: Policy) -> dict[str, Any]:
    minor = figure.verdict == "undecided" and undecided == "pass"
    key = f"{result.file}\0{figure.name}\0{figure.metric}\0{figure.verdict}"
    return {
        "description": visible_line(f"{_TITLES[figure.verdict]}: {figure.name}: {figure_sentence(figure)}"),
        "check_name": f"ajuste gate: {figure.verdict}",
        "fingerprint": hashlib.sha256(key.encode(errors="replace")).hexdigest(),
        "severity": "minor" if minor else "major",
        "location": {"path": result.file, "lines": {"begin": figure.line or 1}},
    }


# A badge: a picture of two words, as pages show it.


_COLOURS: Final[dict[GateWord, str]] = {
    "pass": "#2e7d32",
    "regression": "#b3261e",
    "undecided": "#7d5a00",
    "failed": "#5f6368",
    "new": "#2e7d32",
    "removed": "#2e7d32",
}
_LABEL: Final = "ajuste gate"
# Pixels of a letter, about.
_LETTER: Final = 7
_HEIGHT: Final = 20


def badge(result: GateResult) -> str:
    """Return an SVG picture of the result; it names nothing of the project."""
    count = len(result.having(result.result))
    word = count_of(count, "regression") if result.result == "regression" else result.result
    widths = [_LETTER * len(text) + 10 for text in (_LABEL, word)]
    whole = sum(widths)
    svg = Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        width=str(whole),
        height=str(_HEIGHT),
        role="img",
    )
    svg.set("aria-label", f"{_LABEL}: {word}")
    SubElement(svg, "title").text = headline(result) if result.result == "pass" else f"{_LABEL}: {word}"
    SubElement(svg, "rect", width=str(whole), height=str(_HEIGHT), rx="3", fill="#333")
    SubElement(
        svg,
        "path",
        d=f"M{widths[0]} 0h{widths[1] - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{widths[1] - 3}z",
        fill=_COLOURS[result.result],
    )
    for text, middle in ((_LABEL, widths[0] / 2), (word, widths[0] + widths[1] / 2)):
        element = SubElement(svg, "text", x=f"{middle:g}", y="14", fill="#fff")
        element.set("text-anchor", "middle")
        element.set("font-family", "Verdana,DejaVu Sans,sans-serif")
        element.set("font-size", "11")
        element.text = text
    return tostring(svg, encoding="unicode") + "\n"

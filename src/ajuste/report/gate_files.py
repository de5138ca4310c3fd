"""What a gate found, for other programs: JUnit XML, annotations of GitHub and GitLab, and a badge.

Names and messages can be anything that a project file or a build says: in every format they are text and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ajuste.model.gate import GateFigure, GateResult, GateWord, Policy
from ajuste.model.wording import visible, visible_line
from ajuste.report.format import count_of
from ajuste.report.gate import headline, sentence_of

_TITLES: Final[dict[GateWord, str]] = {
    "regression": "Performance regression",
    "undecided": "Performance undecided",
    "failed": "Benchmark failed",
    "pass": "No performance regression",
}

# JUnit XML: what most CI systems show as tests. Source: https://github.com/testmoapp/junitxml


def junit(result: GateResult, undecided: Policy) -> str:
    """A test for each figure. What is undecided fails unless it is to pass; then it is skipped."""
    suite = Element("testsuite", name="ajuste gate", tests=str(len(result.benchmarks)))
    counts = {"failures": 0, "errors": 0, "skipped": 0}
    for figure in result.benchmarks:
        case = SubElement(suite, "testcase", classname=_xml(figure.name), name=_xml(figure.metric))
        kind = _KINDS[figure.verdict, undecided]
        if kind:
            counts[f"{kind}s" if kind != "skipped" else kind] += 1
            said = SubElement(case, kind, message=_xml(sentence_of(figure)))
            if kind != "skipped":
                said.set("type", figure.verdict)
            said.text = visible(figure.reason)
    for name, count in counts.items():
        suite.set(name, str(count))
    suites = Element("testsuites", suite.attrib)
    suites.append(suite)
    indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suites, encoding="unicode")}\n'


_KINDS: Final[dict[tuple[GateWord, Policy], str]] = {
    ("pass", "pass"): "",
    ("pass", "fail"): "",
    ("regression", "pass"): "failure",
    ("regression", "fail"): "failure",
    ("undecided", "pass"): "skipped",
    ("undecided", "fail"): "failure",
    ("failed", "pass"): "error",
    ("failed", "fail"): "error",
}


def _xml(text: str) -> str:
    """On one line; what XML cannot hold is written out (https://www.w3.org/TR/xml/#charsets)."""
    return visible_line(text)


# Workflow commands of GitHub Actions.
# Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions


def github(result: GateResult, undecided: Policy) -> Iterator[str]:
    """A line for each figure that did not pass."""
    for figure in result.benchmarks:
        if figure.verdict != "pass":
            kind = "warning" if figure.verdict == "undecided" and undecided == "pass" else "error"
            title = f"{_TITLES[figure.verdict]}: {figure.name}"
            line = f",line={figure.line}" if figure.line else ""
            yield (
                f"::{kind} file={_property(result.file)}{line},title={_property(title)}::{_data(sentence_of(figure))}"
            )


def _data(text: str) -> str:
    return visible_line(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# The code quality report of GitLab. Source: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format


def gitlab(result: GateResult, undecided: Policy) -> str:
    """A JSON document with each figure that did not pass."""
    found = [_issue(result, one, undecided) for one in result.benchmarks if one.verdict != "pass"]
    return json.dumps(found, indent=2, ensure_ascii=True)


def _issue(result: GateResult, figure: GateFigure, undecided: Policy) -> dict[str, Any]:
    minor = figure.verdict == "undecided" and undecided == "pass"
    key = f"{result.file}\0{figure.name}\0{figure.metric}\0{figure.verdict}"
    return {
        "description": visible_line(f"{_TITLES[figure.verdict]}: {figure.name}: {sentence_of(figure)}"),
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
}
_LABEL: Final = "ajuste gate"
_LETTER: Final = 7
"""Pixels of a letter, about."""
_HEIGHT: Final = 20


def badge(result: GateResult) -> str:
    """An SVG picture that says the result; it names nothing of the project."""
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
        said = SubElement(svg, "text", x=f"{middle:g}", y="14", fill="#fff")
        said.set("text-anchor", "middle")
        said.set("font-family", "Verdana,DejaVu Sans,sans-serif")
        said.set("font-size", "11")
        said.text = text
    return tostring(svg, encoding="unicode") + "\n"

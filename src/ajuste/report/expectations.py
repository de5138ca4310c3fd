"""Expectations of a study as tests, in the forms that test runners read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ajuste.analysis.condition import Expectation
from ajuste.model.wording import visible_line

# Source: https://testanything.org/tap-version-14-specification.html; Documentation/dev-tools/ktap.rst of Linux.

Form = Literal["junit", "tap", "ktap"]


def as_tests(form: Form, study: str, expectations: Sequence[Expectation]) -> str:
    """Return a test for each expectation of ``study``."""
    if form == "junit":
        return _expectations_junit(study, expectations)
    lines = ["TAP version 14" if form == "tap" else "KTAP version 1", f"1..{len(expectations)}"]
    for place, expectation in enumerate(expectations, start=1):
        what = visible_line(expectation.what).replace("#", "\\#")
        lines.append(f"{'ok' if expectation.holds else 'not ok'} {place}{' - ' if form == 'tap' else ' '}{what}")
        if not expectation.holds:
            lines.append(f"# found {visible_line(expectation.actual)}")
    return "\n".join(lines) + "\n"


def _expectations_junit(study: str, expectations: Sequence[Expectation]) -> str:
    failures = sum(not expectation.holds for expectation in expectations)
    suite = Element("testsuite", name=visible_line(study), tests=str(len(expectations)), failures=str(failures))
    for expectation in expectations:
        case = SubElement(suite, "testcase", classname=visible_line(study), name=visible_line(expectation.what))
        if not expectation.holds:
            SubElement(case, "failure", message=visible_line(f"found {expectation.actual}"))
    return junit_text(suite)


def junit_text(suite: Element) -> str:
    """Return a file with that ``testsuite``."""
    suites = Element("testsuites", suite.attrib)
    suites.append(suite)
    indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suites, encoding="unicode")}\n'

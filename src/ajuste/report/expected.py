"""What came out of expectations as tests, in the forms that test runners read.

JUnit XML: https://github.com/testmoapp/junitxml. TAP 14: https://testanything.org/tap-version-14-specification.html.
KTAP 1, as the kernel's own tests print it: Documentation/dev-tools/ktap.rst of Linux.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from xml.etree.ElementTree import Element, SubElement

from ajuste.analysis.condition import Expectation
from ajuste.model.wording import visible_line
from ajuste.report.gate import junit_text

Form = Literal["junit", "tap", "ktap"]


def as_tests(form: Form, study: str, expectations: Sequence[Expectation]) -> str:
    """Return what was ``found`` for ``study``, a test for each expectation."""
    if form == "junit":
        return _expectations_junit(study, expectations)
    lines = ["TAP version 14" if form == "tap" else "KTAP version 1", f"1..{len(expectations)}"]
    for number, expectation in enumerate(expectations, start=1):
        what = visible_line(expectation.what).replace("#", "\\#")
        lines.append(f"{'ok' if expectation.holds else 'not ok'} {number}{' - ' if form == 'tap' else ' '}{what}")
        if not expectation.holds:
            lines.append(f"# found {visible_line(expectation.found)}")
    return "\n".join(lines) + "\n"


def _expectations_junit(study: str, expectations: Sequence[Expectation]) -> str:
    failures = sum(not expectation.holds for expectation in expectations)
    suite = Element("testsuite", name=visible_line(study), tests=str(len(expectations)), failures=str(failures))
    for expectation in expectations:
        case = SubElement(suite, "testcase", classname=visible_line(study), name=visible_line(expectation.what))
        if not expectation.holds:
            SubElement(case, "failure", message=visible_line(f"found {expectation.found}"))
    return junit_text(suite)

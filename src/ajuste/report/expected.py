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


def as_tests(form: Form, study: str, found: Sequence[Expectation]) -> str:
    """Return what was ``found`` for ``study``, a test for each expectation."""
    if form == "junit":
        return _junit(study, found)
    lines = ["TAP version 14" if form == "tap" else "KTAP version 1", f"1..{len(found)}"]
    for number, one in enumerate(found, start=1):
        what = visible_line(one.what).replace("#", "\\#")
        lines.append(f"{'ok' if one.holds else 'not ok'} {number}{' - ' if form == 'tap' else ' '}{what}")
        if not one.holds:
            lines.append(f"# found {visible_line(one.actual)}")
    return "\n".join(lines) + "\n"


def _junit(study: str, found: Sequence[Expectation]) -> str:
    failures = sum(not one.holds for one in found)
    suite = Element("testsuite", name=visible_line(study), tests=str(len(found)), failures=str(failures))
    for one in found:
        case = SubElement(suite, "testcase", classname=visible_line(study), name=visible_line(one.what))
        if not one.holds:
            SubElement(case, "failure", message=visible_line(f"found {one.actual}"))
    return junit_text(suite)

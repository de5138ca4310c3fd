"""Tests that are passed over: none for want of a program where all are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from looped import each
from tiers import ACCEPTED, insist

ROOT = Path(__file__).parents[1]
TESTS = (*ROOT.glob("tests/**/*.py"), *ROOT.glob("packages/*/tests/**/*.py"))
SOURCES = "".join(path.read_text() for path in TESTS if path.name != "tiers.py")


def skipped(reason: str) -> pytest.TestReport:
    where = ("tests/test_x.py", 7, f"Skipped: {reason}")
    return pytest.TestReport("tests/test_x.py::test", ("tests/test_x.py", 7, "test"), {}, "skipped", where, "setup")


def test_a_missing_program_is_a_failure_where_all_are_installed() -> None:
    report = skipped("fio is not installed")
    insist(report, complete=False)
    assert report.skipped
    insist(report, complete=True)
    assert report.failed
    assert "tests/test_x.py:7: Skipped: fio is not installed" in str(report.longrepr)


def test_what_the_machine_cannot_have_stays_a_skip() -> None:
    report = skipped("no loop devices here")
    insist(report, complete=True)
    assert report.skipped


@each(ACCEPTED)
def test_what_is_accepted_is_a_reason_that_a_test_gives(words: str) -> None:
    assert words in SOURCES


def test_a_loop_names_every_entry_that_is_wrong() -> None:
    @each([1, 2, 3])
    def test(number: int) -> None:
        assert number == 2

    with pytest.raises(AssertionError, match=r"1: (.|\n)*3: "):
        test()

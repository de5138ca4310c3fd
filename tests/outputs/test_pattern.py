from __future__ import annotations

import pytest

from ajuste.model.error import RequestError
from ajuste.outputs.base import ParseError
from ajuste.outputs.pattern import Pattern, check_pattern, search

OUT = "rate: 1.5\nnoise\nrate: 2.5 MB/s\n"


def test_the_last_line_that_matches_counts_and_streams_are_apart() -> None:
    patterns = [
        Pattern(metric="rate", pattern=r"rate: ([0-9.]+)"),
        Pattern(metric="errors", pattern=r"^(\d+) errors$", stream="stderr"),
    ]
    assert search(patterns, {"stdout": OUT, "stderr": "3 errors\n"}) == {"rate": 2.5, "errors": 3.0}


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"nothing (\d)", "no line of stdout matches"),
        (r"rate: (.*)", '"2.5 MB/s" is not a number for "rate"'),
        (r"noise(x)?", "no line of stdout matches"),
    ],
)
def test_no_match_and_no_number_are_said(pattern: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        search([Pattern(metric="rate", pattern=pattern)], {"stdout": OUT})


def test_a_pattern_that_backtracks_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ajuste.outputs.pattern.SECONDS", 1)
    with pytest.raises(ParseError, match="backtracks too much"):
        search([Pattern(metric="rate", pattern=r"^((a+)+)b$")], {"stdout": "a" * 4000})


def test_text_of_any_kind_passes_through() -> None:
    text = 'é\u2028"\\ \x00 ${x} = 7\n'
    assert search([Pattern(metric="m", pattern=r'"\\ \x00 \${x} = (\d)')], {"stdout": text}) == {"m": 7.0}


@pytest.mark.parametrize("pattern", ["(", "a{999999999999}(b)", "no group", "(?:x)"])
def test_patterns_that_cannot_work_are_refused(pattern: str) -> None:
    with pytest.raises(RequestError):
        check_pattern(pattern)

"""Options of ``ajuste report``, and the runs that they apply to."""

from __future__ import annotations

import pytest

from shell import Shell


def test_no_run_is_refused(ajuste: Shell) -> None:
    assert "--format lkml applies to one run; found none" in ajuste("report", "--format", "lkml", expect=2)[1]


def test_metrics_that_are_named_are_shown_on_the_terminal(ajuste: Shell, machine_lock: object) -> None:
    ajuste("compare", "--quiet", "--blocks", "4", "--", "true", "--", "sleep", "0.05")
    output, _ = ajuste("report", "compare", "--metric", "minor-faults")
    assert "Minor page faults: " in output
    assert "Elapsed time: " not in output
    assert "'elapsd' was not measured" in ajuste("report", "compare", "--metric", "elapsd", expect=2)[1]


@pytest.mark.parametrize(
    "words", [("--html", "x.html"), ("--markdown", "x.md"), ("--metric", "elapsed"), ("--trials",), ("--format", "svg")]
)
def test_what_applies_to_one_run_is_refused_without_one(ajuste: Shell, words: tuple[str, ...]) -> None:
    output, complained = ajuste("report", *words, expect=2)
    assert output == ""
    assert complained == f"ajuste: {words[0]} applies to one run; found none\n  name one RUN\n"


def test_a_format_without_pictures_is_refused(ajuste: Shell) -> None:
    assert "--format png requires --pictures" in ajuste("report", "compare", "--format", "png", expect=2)[1]

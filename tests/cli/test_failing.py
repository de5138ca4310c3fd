"""``--fail-on``: the exit code for scripts, and the last line that says why."""

from __future__ import annotations

import json

import pytest

from shell import Shell

# Enough blocks for a limit of 10 % beside a few trials that another program disturbed.
LONGER = ("--blocks", "12..60", "--quiet", "--", "sleep", "0.01", "--", "sleep", "0.2")
SHORTER = ("--blocks", "12..60", "--quiet", "--", "sleep", "0.2", "--", "sleep", "0.01")


@pytest.mark.usefixtures("machine_lock")
def test_a_proved_regression_is_3_and_the_last_line_says_so(ajuste: Shell) -> None:
    output, complained = ajuste("compare", "--fail-on", "worsens:elapsed:10%", *LONGER, expect=3)
    assert complained == ""
    assert output.splitlines()[-1].startswith("--fail-on worsens:elapsed:10%: sleep 0.2 on elapsed (×")
    assert output.splitlines()[-1].endswith("proved to worsen by more than 10 %; exit code 3")


@pytest.mark.usefixtures("machine_lock")
def test_an_improvement_is_0(ajuste: Shell) -> None:
    output, _ = ajuste("compare", "--fail-on", "worsens", *SHORTER)
    assert output.splitlines()[-1] == "--fail-on worsens: nothing worsens; exit code 0"


@pytest.mark.usefixtures("machine_lock")
def test_undecided_is_0_and_is_said_beside_the_document(ajuste: Shell) -> None:
    two_blocks = ("--blocks", "2", "--", "true", "--", "true", "x")
    output, complained = ajuste("compare", "--json", "--quiet", "--fail-on", "worsens", *two_blocks)
    assert json.loads(output)["verdicts"][0]["verdict"] == "undecided"
    assert complained.startswith("--fail-on worsens: undecided for true x on elapsed (")
    assert complained.rstrip().endswith("exit code 0")


def test_a_wrong_condition_is_refused_before_anything_is_measured(ajuste: Shell) -> None:
    for words in (("compare", "--fail-on", "worsens:elapsd", *LONGER), ("run", "granularity", "--fail-on", "better")):
        output, complained = ajuste(*words, expect=2)
        assert output == ""
        assert complained.startswith("ajuste: --fail-on ")
    assert "There are no runs yet" in ajuste("report")[0]


def test_it_is_checked_for_a_plan_too(ajuste: Shell) -> None:
    ajuste("compare", "--dry-run", "--fail-on", "worsens", *LONGER)
    ajuste("compare", "--dry-run", "--fail-on", "worse", *LONGER, expect=2)

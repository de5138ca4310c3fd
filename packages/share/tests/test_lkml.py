"""``ajuste report --format lkml``: a run as a mail has it."""

from __future__ import annotations

import pytest

from shell import Shell


@pytest.fixture
def measured(ajuste: Shell, machine_lock: object) -> Shell:
    del machine_lock
    ajuste("compare", "--quiet", "--blocks", "4", "--", "true", "--", "sleep", "0.05")
    return ajuste


def test_the_tables_of_a_run_fit_a_mail(measured: Shell) -> None:
    output, complained = measured("report", "compare", "--format", "lkml")
    assert complained == ""
    assert output.isascii()
    assert max(map(len, output.splitlines())) <= 72
    assert "Units         : Normalized to true" not in output  # the other name is too long for a column
    assert "  A   true (baseline)\n  B   sleep 0.05\n" in output
    assert "Reproduce with:\n  ajuste compare --blocks 4 -- true -- sleep 0.05\n" in output
    other, _ = measured("report", "compare", "--format", "lkml", "--metric", "peak-rss")
    assert "\npeak-rss " in other
    assert "\nelapsed " not in other

    for words, message in (
        (("--json",), "--format lkml conflicts with --json"),
        (("--trials",), "--format lkml conflicts with --trials"),
        (("--pictures", "figures"), "--format lkml conflicts with --pictures"),
        (("compare",), "--format lkml applies to one run; found 2"),
        (("--mechanism", "compare"), "--mechanism compare: the run has no recording"),
        (("--metric", "elapsd"), "--metric: 'elapsd' was not measured; did you mean elapsed?"),
    ):
        output, complained = measured("report", "compare", "--format", "lkml", *words, expect=2)
        assert output == ""
        assert message in complained

"""The report on the history of a project, in which hostile text stays text."""

from __future__ import annotations

import io

import pytest

from ajuste.report.console import Console
from ajuste.report.markdown import markdown
from ajuste.report.terminal import print_report
from ajuste_ci.commands.history import headline, history_report
from ajuste_ci.model import CommitChange, CommitHistory, CommitPoint, HistoryResult, ProjectCommit

COMMITS = tuple(
    ProjectCommit(commit=digit * 40, date="2026-11-23", subject=subject)
    for digit, subject in (("a", "One"), ("b", "Two"), ("c", "\x1b[2J<b>"), ("d", "Four"))
)
CHANGE = CommitChange(before=COMMITS[1], after=COMMITS[3], change=1.2, worse=True, between=COMMITS[2:])


def history(*changes: CommitChange, known: bool = True, reason: str = "") -> HistoryResult:
    points = tuple(
        CommitPoint(
            commit=commit,
            value=None if commit is COMMITS[2] else 100.0,
            reason="does not build" * (commit is COMMITS[2]),
        )
        for commit in COMMITS
    )
    commit_history = CommitHistory(
        name="job", metric="instructions", limit=0.01, points=points, changes=changes, known=known, reason=reason
    )
    return HistoryResult(file="ajuste.toml", histories=(commit_history,))


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (history(CHANGE), "1 change beyond the limit: dddddddddddd (job +20 %)."),
        (history(), "No metric changed by more than its limit."),
        (history(known=False), "Not precise enough yet to locate a change: job."),
        (history(reason="it does not build"), "1 benchmark could not be measured: job."),
        (
            HistoryResult(file="", histories=(*history(CHANGE).histories, *history(reason="lost").histories)),
            "1 change beyond the limit: dddddddddddd (job +20 %). 1 benchmark could not be measured: job.",
        ),
    ],
)
def test_the_answer_comes_first(result: HistoryResult, answer: str) -> None:
    assert headline(result) == answer


def test_each_commit_has_a_row_and_those_between_are_named() -> None:
    out = io.StringIO()
    print_report(history_report(history(CHANGE)), Console(file=out, width=120))
    text = out.getvalue()
    rows = [line.split()[0] for line in text.splitlines() if "2026-11-23" in line]
    assert rows == [commit.short for commit in COMMITS]
    assert "does not build" in text
    assert "+20 % came with one of cccccccccccc" in " ".join(text.split())
    assert "ajuste gate measures two commits alone" in " ".join(text.split())
    assert "\x1b" not in text
    page = markdown(history_report(history(CHANGE)))
    assert "<b>" not in page
    assert "\x1b" not in page

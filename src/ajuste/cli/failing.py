"""The exit code of a command in a script that must fail where something worsens, and the line that says why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

import typer

from ajuste.analysis.condition import Checked, checked
from ajuste.model.results import Results
from ajuste.model.verdict import FailCondition, Verdict
from ajuste.model.wording import change, percent, visible_line
from ajuste.study.command_line.condition import OPTION

PROVED: Final = 3
"""It is proved that something worsens."""

_MOST_NAMED: Final = 3


def exit_code_of(conditions: Sequence[FailCondition], results: Results, *, as_json: bool) -> int:
    """3 where one of ``conditions`` came true, 0 otherwise; a line for each says which, the last of the output. It goes
    to standard error where standard output has one document.
    """
    found = checked(conditions, results)
    code = PROVED if any(one.proving for one in found) else 0
    for one in found:
        own = PROVED if one.proving else 0
        typer.echo(visible_line(f"{OPTION} {one.condition.text}: {_said(one)}; exit code {own}"), err=as_json)
    sys.stdout.flush()
    return code


def _said(one: Checked) -> str:
    if one.proving:
        return f"{_named(one.proving)}, proved to worsen{_beyond(one.condition)}"
    if one.open:
        return f"undecided for {_named(one.open)}"
    return f"nothing worsens{_beyond(one.condition)}"


def _beyond(condition: FailCondition) -> str:
    return "" if condition.limit is None else f" by more than {percent(condition.limit)}"


def _named(verdicts: Sequence[Verdict]) -> str:
    said = [f"{one.configuration} on {one.metric} ({_interval(one)})" for one in verdicts[:_MOST_NAMED]]
    more = [f"{len(verdicts) - _MOST_NAMED} more"] if len(verdicts) > _MOST_NAMED else []
    return ", ".join((*said, *more))


def _interval(verdict: Verdict) -> str:
    if verdict.low is None and verdict.high is None:
        return "no interval yet"
    low, high = (change(value, verdict.scale, verdict.unit) for value in (verdict.low, verdict.high))
    return f"{low} to {high}"

"""Which lines of a profile matter, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from ajuste.analysis.wording import change, listed
from ajuste.model.metric import Metric
from ajuste.model.verdict import LineEffect, Role

_SAID: dict[Role, tuple[str, str]] = {
    "helps": ("helps", "help"),
    "harms": ("harms", "harm"),
    "matters": ("matters", "matter"),
    "depends": ("depends on the others", "depend on the others"),
    "useless": ("is useless for this workload", "are useless for this workload"),
    "undecided": ("is undecided", "are undecided"),
}


def lines_answer(lines: Sequence[LineEffect], metrics: Sequence[Metric]) -> str:
    """What the whole does to each metric, and which lines do it: of further metrics than the first how many."""
    of_metrics = [[one for one in lines if one.metric == metric.name] for metric in metrics if lines]
    pairs = zip(of_metrics, metrics, strict=False)
    return " ".join(_of_metric(own, metric, named=own is of_metrics[0]) for own, metric in pairs)


def _of_metric(lines: Sequence[LineEffect], metric: Metric, *, named: bool) -> str:
    whole = next(one for one in lines if one.kind == "whole")
    title = f"{metric.title[:1].upper()}{metric.title[1:]}"
    by_role = {role: [one for one in lines if one.kind == "line" and one.role == role] for role in _SAID}
    said = [_group(role, own) if named else _count(role, len(own)) for role, own in by_role.items() if own]
    return f"{title}: the whole profile {_whole(whole)}. {'; '.join(said)}."


def _whole(whole: LineEffect) -> str:
    interval = f"{change(whole.low, whole.scale, whole.unit)} to {change(whole.high, whole.scale, whole.unit)}"
    by = f"{change(whole.estimate, whole.scale, whole.unit)} ({interval})"
    words = {
        "equivalent": "changes nothing that matters",
        "undecided": "may do something or nothing",
        "differs": "does",
    }
    return f"{words.get(whole.verdict, whole.verdict)}, {by}" if whole.estimate is not None else "is not measured yet"


def _group(role: Role, lines: Sequence[LineEffect]) -> str:
    one, several = _SAID[role]
    ordered = sorted(lines, key=lambda line: -abs(line.part or 0))
    named = [line.line + (f" ({_part(line)})" if role in ("helps", "harms", "matters") else "") for line in ordered]
    return f"{listed(named)} {one if len(lines) == 1 else several}"


def _count(role: Role, lines: int) -> str:
    return f"{lines} {'line' if lines == 1 else 'lines'} {_SAID[role][lines != 1]}"


def _part(line: LineEffect) -> str:
    """A part of the whole, or where lines act against each other what the line does."""
    if line.part is not None and 0 < line.part <= 1:
        return f"{100 * line.part:.0f} % of that"
    return change(line.estimate, line.scale, line.unit)

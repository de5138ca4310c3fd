"""The answer of an ablation: what the whole profile does, and which of its lines do it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ajuste.model.metric import Metric
from ajuste.model.verdict import LineEffect, Role
from ajuste.model.wording import listed, sentence_start

_VERBS: Final[dict[Role, tuple[str, str]]] = {
    "helps": ("helps", "help"),
    "harms": ("harms", "harm"),
    "matters": ("matters", "matter"),
    "depends": ("depends on the others", "depend on the others"),
    "useless": ("is useless for this workload", "are useless for this workload"),
    "undecided": ("is undecided", "are undecided"),
}


def lines_answer(lines: Sequence[LineEffect], metrics: Sequence[Metric]) -> str:
    """Say what the whole profile does to each metric, and which lines do it; of further metrics how many lines."""
    of_metrics = [[line for line in lines if line.metric == metric.name] for metric in metrics if lines]
    pairs = zip(of_metrics, metrics, strict=False)
    return " ".join(
        _of_metric(metric_lines, metric, named=metric_lines is of_metrics[0]) for metric_lines, metric in pairs
    )


def _of_metric(lines: Sequence[LineEffect], metric: Metric, *, named: bool) -> str:
    whole = next(line for line in lines if line.kind == "whole")
    groups = []
    for role, (singular, plural) in _VERBS.items():
        alike = [line for line in lines if line.kind == "line" and line.role == role]
        if not alike:
            continue
        words = f"{len(alike)} {'line' if len(alike) == 1 else 'lines'}"
        if named:
            alike.sort(key=lambda line: -abs(line.part or 0))
            has_part = role in ("helps", "harms", "matters")
            words = listed([f"{line.line} ({_part(line)})" if has_part else line.line for line in alike])
        groups.append(f"{words} {singular if len(alike) == 1 else plural}")
    return f"{sentence_start(metric.title)}: the whole profile {_whole(whole)}. {'; '.join(groups)}."


def _whole(whole: LineEffect) -> str:
    words = {
        "equivalent": "has no effect that matters",
        "undecided": "is undecided",
        "differs": "does",
    }
    if whole.estimate is None:
        return "is not measured yet"
    return f"{words.get(whole.verdict, whole.verdict)}, {whole.effect} ({whole.interval})"


def _part(line: LineEffect) -> str:
    # Return the part of the whole, or where lines act against each other the line's effect.
    if line.part is not None and 0 < line.part <= 1:
        return f"{100 * line.part:.0f} % of that"
    return line.effect

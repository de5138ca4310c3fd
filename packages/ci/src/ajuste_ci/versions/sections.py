"""The section on versions: where a metric changed, in sentences and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ajuste.model.history import HISTORIES, History, VersionChange
from ajuste.model.results import Results
from ajuste.model.wording import change, count_of, listed, percent, visible_line
from ajuste.report.document import Paragraph, Picture, Section
from ajuste.report.format import Labels
from ajuste_ci.versions.plot import history_plot, line_name

PLACE: Final = "metrics"
HISTORY_TITLE = "Through the versions"


def sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return a section with a picture of each metric; empty if no versions are compared."""
    groups = _by_metric(results)
    if not groups:
        return ()
    plots = (history_plot(results, histories, labels, f"history-{place}") for place, histories in enumerate(groups))
    paragraphs = map(Paragraph, _history_sentences(results, labels))
    return (Section(HISTORY_TITLE, (*paragraphs, *map(Picture, plots)), "history", "Versions"),)


def _by_metric(results: Results) -> list[list[History]]:
    groups: dict[str, list[History]] = {}
    for history in HISTORIES.of(results):
        groups.setdefault(history.metric, []).append(history)
    return list(groups.values())


def _history_sentences(results: Results, labels: Labels) -> Iterator[str]:
    metrics = {metric.name: metric for metric in results.metrics}
    for histories in _by_metric(results):
        for history in histories:
            metric = metrics[history.metric]
            of = f" ({line_name(history, labels)})" if len(histories) > 1 else ""
            title = f"{visible_line(metric.title)}{of}"
            yield f"{title}: {_history_text(history, results.smallest_effect, metric.unit)}"


def _history_text(history: History, smallest_effect: float, unit: str) -> str:
    first, last = history.points[0].version, history.points[-1].version
    if not history.known:
        return f"not yet precise enough to locate a change from {first} to {last}."
    if not history.changes:
        return f"no change of more than {percent(smallest_effect)} from {first} to {last}."
    changes = listed([_change(history, step, unit) for step in history.changes])
    return f"{count_of(len(history.changes), 'change')}: {changes}."


def _change(history: History, step: VersionChange, unit: str) -> str:
    scheduler = {point.version: point.scheduler for point in history.points}
    old, new = scheduler[step.before], scheduler[step.after]
    also = f", where {new} replaced {old}," if old != new else ""
    return f"from {step.before} to {step.after}{also} by {change(step.change, history.scale, unit)}"

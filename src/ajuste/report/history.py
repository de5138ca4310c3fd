"""What is told of versions of the kernel: where a metric changed, in sentences and pictures."""

from __future__ import annotations

from collections.abc import Iterator

from ajuste.analysis.wording import change, listed, percent
from ajuste.model.history import History, VersionChange
from ajuste.model.results import Results
from ajuste.report.format import count_of
from ajuste.report.labels import Labels
from ajuste.report.plots.history import flavour_name, history_plot
from ajuste.report.surfaces import SurfaceSection
from ajuste.report.visible import visible_line

HISTORY_TITLE = "Through the versions"


def history_sections(results: Results, labels: Labels) -> tuple[SurfaceSection, ...]:
    """One section with a picture of each metric; nothing where no versions are compared."""
    groups = _by_metric(results)
    if not groups:
        return ()
    plots = tuple(
        history_plot(results, histories, labels, f"history-{place}") for place, histories in enumerate(groups)
    )
    return (SurfaceSection(HISTORY_TITLE, history_sentences(results, labels), plots),)


def history_sentences(results: Results, labels: Labels) -> tuple[str, ...]:
    """A sentence for each metric and line of versions."""
    return tuple(_sentences(results, labels))


def _by_metric(results: Results) -> list[list[History]]:
    groups: dict[str, list[History]] = {}
    for history in results.histories:
        groups.setdefault(history.metric, []).append(history)
    return list(groups.values())


def _sentences(results: Results, labels: Labels) -> Iterator[str]:
    metrics = {metric.name: metric for metric in results.metrics}
    for histories in _by_metric(results):
        for history in histories:
            metric = metrics[history.metric]
            of = _of(history, labels) if len(histories) > 1 else ""
            title = f"{visible_line(metric.title)}{of}"
            yield f"{title} {_said(history, results.smallest_effect, metric.unit)}"


def _of(history: History, labels: Labels) -> str:
    fixed = [labels.level(name, level) for name, level in history.fixed.items()]
    return f" ({', '.join([flavour_name(history), *fixed])})"


def _said(history: History, smallest_effect: float, unit: str) -> str:
    first, last = history.points[0].version, history.points[-1].version
    if not history.known:
        return f"is not known well enough yet from {first} to {last} to say where it changes."
    if not history.changes:
        return f"changes nowhere from {first} to {last} by more than {percent(smallest_effect)}."
    places = count_of(len(history.changes), "place")
    return f"changes at {places}: {listed([_change(history, one, unit) for one in history.changes])}."


def _change(history: History, one: VersionChange, unit: str) -> str:
    scheduler = {point.version: point.scheduler for point in history.points}
    old, new = scheduler[one.before], scheduler[one.after]
    also = f", where {new} took the place of {old}," if old != new else ""
    return f"from {one.before} to {one.after}{also} by {change(one.change, history.scale, unit)}"

"""Sections on versions, and the pictures of one deciding metric."""

from __future__ import annotations

from collections.abc import Iterator

from ajuste.model.history import HISTORIES, History, VersionChange
from ajuste.model.metric import Metric
from ajuste.model.origin import ELSEWHERE
from ajuste.model.results import Results
from ajuste.model.wording import change, count_of, listed, percent, visible_line
from ajuste.report.document import Paragraph, Picture, Section
from ajuste.report.facets import facet_plots, is_drawn
from ajuste.report.format import Labels
from ajuste.report.plots.curve import curve_plot, predicted_plot
from ajuste.report.plots.factor_effects import interaction_plots, pareto_plots
from ajuste.report.plots.forest import forest_plots
from ajuste.report.plots.heatmap import heatmap_plot
from ajuste.report.plots.history import history_plot, line_name
from ajuste.report.plots.plot import Plot
from ajuste.report.plots.trials import trials_plot
from ajuste.report.tables import is_screening
from ajuste.report.trials import Excerpt

# Versions of the kernel: where a metric changed, in sentences and pictures.


HISTORY_TITLE = "Through the versions"


def history_sections(results: Results, labels: Labels) -> tuple[Section, ...]:
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


# The pictures of one deciding metric.


def metric_pictures(
    results: Results, excerpt: Excerpt, metric: Metric, labels: Labels, name: str
) -> tuple[Picture, ...]:
    """Return trials, effects, and how the metric depends on each factor."""
    subset = excerpt.results
    # A line needs all of its levels: of a grid with too many configurations the heat map has them.
    drawn = is_drawn(results, metric.name)
    lines = () if drawn or (excerpt.of_configurations and len(labels.factors) > 1) else labels.factors
    plots = (
        *facet_plots(results, metric, name),
        predicted_plot(subset, metric, labels, f"{name}-predicted"),
        *(() if is_screening(results) else _plots_of_configurations(subset, metric, labels, name)),
        *pareto_plots(results, metric, labels, f"{name}-pareto"),
        *interaction_plots(results, metric, labels, f"{name}-interaction"),
        *(curve_plot(results, metric, factor, labels, f"{name}-curve-{place}") for place, factor in enumerate(lines)),
        None if drawn else heatmap_plot(results, metric, labels, f"{name}-heatmap"),
    )
    return tuple(Picture(plot, metric.title) for plot in plots if plot is not None)


def _plots_of_configurations(results: Results, metric: Metric, labels: Labels, name: str) -> tuple[Plot | None, ...]:
    # Not of a screening design: none of its configurations tells anything by itself.
    drawn = not ELSEWHERE.of(results) or any(metric.name in trial.metrics for trial in results.trials)
    trials = trials_plot(results, metric, labels, f"{name}-trials") if drawn else None
    return (trials, *forest_plots(results, metric, labels, f"{name}-forest"))

"""Sections of surfaces: one for each combination of the other factors' levels, in sentences and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ajuste.model.history import HISTORIES, History, VersionChange
from ajuste.model.metric import Metric
from ajuste.model.origin import ELSEWHERE
from ajuste.model.results import Results
from ajuste.model.tuning import Tuning
from ajuste.model.wording import change, count_of, first_few, in_sentence, listed, percent, visible_line
from ajuste.report.document import Block, Paragraph, Picture, Section
from ajuste.report.format import Labels
from ajuste.report.plots.curve import curve_plot, predicted_plot
from ajuste.report.plots.factor_effects import interaction_plots, pareto_plots
from ajuste.report.plots.forest import forest_plots, lines_plot
from ajuste.report.plots.heatmap import correlation_plot, correlation_text, heatmap_plot, strongest
from ajuste.report.plots.history import history_plot, line_name
from ajuste.report.plots.plot import Plot
from ajuste.report.plots.search import front_plot, importance_plot, search_history_plot, search_map
from ajuste.report.plots.surface_curves import View, in_words, surface_curves, surface_view
from ajuste.report.plots.trials import trials_plot
from ajuste.report.tables import is_screening, metric_verdicts
from ajuste.report.trials import Excerpt

_MOST_NAMED: Final = 6  # of the set of the best
_MOST_CORRELATED: Final = 2


def surface_sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return a section for each combination of the other factors' levels; empty without numeric factors."""
    by_levels: dict[tuple[tuple[str, str], ...], list[View]] = {}
    for surface in results.surfaces:
        by_levels.setdefault(tuple(surface.fixed.items()), []).append(surface_view(results, surface, labels, {}))
    sections = []
    for place, (levels, views) in enumerate(by_levels.items()):
        view, name = views[0], f"surface-{place}"
        fixed = [f"{view.factor(factor)} = {labels.level(factor, level)}" for factor, level in levels]
        title = f"Over {listed([view.factor(axis.factor) for axis in view.surface.axes])}"
        title += f", with {listed(fixed)}" if fixed else ""
        sections.append(Section(title, tuple(_blocks(views, name)), name, "Surface" if place == 0 else ""))
    return tuple(sections)


def _blocks(views: Sequence[View], name: str) -> Iterator[Block]:
    deciding = [view for view in views if view.surface.deciding]
    by_view = [list(_surface_sentences(view)) for view in deciding]
    yield from (Paragraph(sentences[0]) for sentences in by_view if sentences)
    yield from (Paragraph(sentence, detail=True) for sentences in by_view for sentence in sentences[1:])
    yield from map(Picture, _deciding_plots(deciding, name))
    yield from map(Picture, _explaining_plots([view for view in views if not view.surface.deciding], f"{name}-why"))
    if not views[0].surface.fixed:
        plots = (correlation_plot(v.results, v.metric, f"{name}-{at}-correlation") for at, v in enumerate(deciding))
        yield from (Picture(plot) for plot in plots if plot is not None)


def _deciding_plots(views: Sequence[View], name: str) -> Iterator[Plot]:
    from ajuste.report.plots.surface_map import surface_map  # Few reports need NumPy.

    for place, view in enumerate(views):
        drawn = surface_map(view, f"{name}-{place}-map", wide=True)
        curves = (surface_curves(view, axis, f"{name}-{place}-curves-{axis}") for axis in _along(view))
        yield from (plot for plot in (drawn, *curves) if plot is not None)


def _explaining_plots(views: Sequence[View], name: str) -> Iterator[Plot]:
    from ajuste.report.plots.surface_map import surface_map  # Few reports need NumPy.

    maps = [surface_map(view, f"{name}-{place}-map") for place, view in enumerate(views)]
    curves = [
        surface_curves(view, axis, f"{name}-{place}-curves-{axis}")
        for axis in (_along(views[0]) if views else ())
        for place, view in enumerate(views)
    ]
    yield from (plot for plot in (*maps, *curves) if plot is not None)


def _along(view: View) -> range:
    return range(len(view.surface.axes))


def _surface_sentences(view: View) -> Iterator[str]:
    title = visible_line(view.metric.title)
    if view.surface.flat:
        # Rounded up to a tenth of a percent, so that the sentence holds.
        share = -(-view.surface.within * 1000 // 1) / 1000 if view.surface.within else 0.0
        alike = f"within ±{percent(share)} of the baseline" if share else "equivalent to the baseline"
        points = count_of(len(view.surface.points), _noun(view))
        yield f"No setting matters here: all {points} are {alike} ({in_sentence(title)})."
        return
    if view.surface.best is not None:
        yield _best(view, title)
    for place in _along(view):
        if sentence := _regions(view, place):
            yield sentence
    if not view.surface.fixed:
        yield from _goes_along(view, title)


def _best(view: View, title: str) -> str:
    surface = view.surface
    best = next(point for point in surface.points if point.configuration == surface.best)
    against = next((v for v in metric_verdicts(view.results, surface.metric) if v.configuration == surface.best), None)
    figures = [view.fmt.with_unit(best.value)]
    if against is not None and against.estimate is not None:
        figures.append(f"{against.effect} against the baseline")
    levels = view.configurations[best.configuration].levels
    names = [axis.factor for axis in surface.axes]
    settings = ", ".join(f"{view.factor(name)} = {view.labels.level(name, levels[name])}" for name in names)
    text = f"{title}: best at {settings} ({', '.join(figures)})."
    others = [name for name in surface.best_set if name != surface.best]
    if len(others) + 1 == len(surface.points):
        return f"{text} The others are not distinguishable from it after {count_of(surface.blocks, 'block')}."
    if not others:
        return f"{text} Every other {_noun(view)} is worse."
    named = "; ".join(first_few([view.name(name) for name in others], _MOST_NAMED))
    counted = count_of(len(others), f"other {_noun(view)}")
    return f"{text} Not distinguishable from it: {counted} ({named})."


def _noun(view: View) -> str:
    return "level" if len(view.surface.axes) == 1 else "combination"


def _regions(view: View, place: int) -> str:
    # Along the axis at `place`, through the best or else the baseline.
    axis = view.surface.axes[place]
    chosen = view.surface.best or view.surface.points[0].configuration
    levels = view.configurations[chosen].levels
    curves = [
        c for c in view.surface.curves if c.along == axis.factor and all(levels[f] == x for f, x in c.fixed.items())
    ]
    if not curves or not curves[0].regions:
        return ""
    fixed = [f"{view.factor(f)} = {view.labels.level(f, level)}" for f, level in curves[0].fixed.items()]
    text = ", ".join(in_words(view, axis, region) for region in curves[0].regions)
    return f"Along {view.factor(axis.factor)}{f', with {listed(fixed)}' if fixed else ''}: {text}."


def _goes_along(view: View, title: str) -> Iterator[str]:
    titles = {metric.name: visible_line(metric.title) for metric in view.results.metrics}
    for correlation in strongest(view.results, view.metric)[:_MOST_CORRELATED]:
        other = in_sentence(titles[correlation.other])
        how = "rise and fall together" if correlation.rho > 0 else "move in opposite directions"
        text = correlation_text(correlation)
        yield f"{title} and {other} {how} over the {correlation.n} configurations ({text})."


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


# A search besides its verdict: how it went, where it looked, which settings matter.


def search_sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return the section on the search; empty if there was none."""
    tuning = results.tuning
    if tuning is None:
        return ()
    known = {metric.name: metric for metric in results.metrics}
    metrics = tuple(known[name] for name in tuning.objectives)
    plots = (
        search_history_plot(tuning, metrics[0]),
        search_map(results, tuning, metrics[0], labels),
        front_plot(results, tuning, metrics),
        importance_plot(tuning, metrics[0]),
    )
    drawn = tuple(plot for plot in plots if plot is not None)
    paragraphs = map(Paragraph, _search_sentences(tuning))
    return (Section("The search", (*paragraphs, *map(Picture, drawn)), "search", "Search"),)


def _search_sentences(tuning: Tuning) -> Iterator[str]:
    in_check = sum(step.phase == "check" for step in tuning.steps)
    searched = len(tuning.steps) - in_check
    yield (
        f"{count_of(tuning.tried, 'configuration')} in {searched} trials beside the baseline ({tuning.sampler}), then "
        f"{count_of(in_check, 'trial')} of the choice in {count_of(tuning.check_blocks, 'fresh block')}; "
        f"{tuning.trials} of at most {tuning.allowed} trials in all."
    )
    if tuning.importance:
        shares = ", ".join(
            f"{visible_line(i.factor)} {percent(round(i.share, 2))} ({percent(round(i.low, 2))} to "
            f"{percent(round(i.high, 2))})"
            for i in tuning.importance
        )
        yield (
            f"Share of the variation that disappears if a setting is held fixed, by the model of the search: {shares}. "
            "If settings interact, the shares add up to more than 100 %."
        )


# The pictures of one deciding metric.


def metric_pictures(
    results: Results, excerpt: Excerpt, metric: Metric, labels: Labels, name: str
) -> tuple[Picture, ...]:
    """Return trials, effects, and how the metric depends on each factor."""
    subset = excerpt.results
    # A line needs all of its levels: of a grid with too many configurations the heat map has them.
    drawn = any(surface.metric == metric.name for surface in results.surfaces)
    drawn = drawn or results.tuning is not None  # What a search has tried makes no lines, and its map is drawn.
    lines = () if drawn or (excerpt.of_configurations and len(labels.factors) > 1) else labels.factors
    plots = (
        lines_plot(results, metric, f"{name}-lines"),
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

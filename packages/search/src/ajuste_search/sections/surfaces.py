"""Sections of surfaces: one for each combination of the other factors' levels, in sentences and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ajuste.model.results import Results
from ajuste.model.surface import SURFACES
from ajuste.model.wording import count_of, first_few, in_sentence, listed, percent, visible_line
from ajuste.report.document import Block, Paragraph, Picture, Section
from ajuste.report.format import Labels
from ajuste.report.plots.plot import Plot
from ajuste.report.tables import metric_verdicts
from ajuste_search.surface.correlation import correlation_plot, correlation_text, strongest
from ajuste_search.surface.curves import View, in_words, surface_curves, surface_view

PLACE: Final = "metrics"

_MOST_NAMED: Final = 6  # of the set of the best
_MOST_CORRELATED: Final = 2


def sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return a section for each combination of the other factors' levels; empty without numeric factors."""
    by_levels: dict[tuple[tuple[str, str], ...], list[View]] = {}
    for surface in SURFACES.of(results):
        by_levels.setdefault(tuple(surface.fixed.items()), []).append(surface_view(results, surface, labels, {}))
    parts = []
    for place, (levels, views) in enumerate(by_levels.items()):
        view, name = views[0], f"surface-{place}"
        fixed = [f"{view.factor(factor)} = {labels.level(factor, level)}" for factor, level in levels]
        title = f"Over {listed([view.factor(axis.factor) for axis in view.surface.axes])}"
        title += f", with {listed(fixed)}" if fixed else ""
        parts.append(Section(title, tuple(_blocks(views, name)), name, "Surface" if place == 0 else ""))
    return tuple(parts)


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
    from ajuste_search.surface.map import surface_map  # Few reports need NumPy.

    for place, view in enumerate(views):
        drawn = surface_map(view, f"{name}-{place}-map", wide=True)
        curves = (surface_curves(view, axis, f"{name}-{place}-curves-{axis}") for axis in _along(view))
        yield from (plot for plot in (drawn, *curves) if plot is not None)


def _explaining_plots(views: Sequence[View], name: str) -> Iterator[Plot]:
    from ajuste_search.surface.map import surface_map  # Few reports need NumPy.

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


def draws(results: Results, metric: str) -> bool:
    """Return whether a surface of the metric is drawn."""
    return any(surface.metric == metric for surface in SURFACES.of(results))

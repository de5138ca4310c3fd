"""The pictures of one deciding metric."""

from __future__ import annotations

from ajuste.model.metric import Metric
from ajuste.model.origin import ELSEWHERE
from ajuste.model.results import Results
from ajuste.report.document import Picture
from ajuste.report.facets import facet_plots, is_drawn
from ajuste.report.format import Labels
from ajuste.report.plots.curve import curve_plot, predicted_plot
from ajuste.report.plots.factor_effects import interaction_plots, pareto_plots
from ajuste.report.plots.forest import forest_plots
from ajuste.report.plots.heatmap import heatmap_plot
from ajuste.report.plots.plot import Plot
from ajuste.report.plots.trials import trials_plot
from ajuste.report.tables import is_screening
from ajuste.report.trials import Excerpt


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

"""Surfaces and correlations of a run, from its results and trials."""

from __future__ import annotations

from ajuste.analysis.block_values import Promise
from ajuste.analysis.pairs import units
from ajuste.analysis.results import configurations, mean_metrics
from ajuste.analysis.summary import AsRun, as_run, with_quantile_columns
from ajuste.model.surface import Correlation, Surface
from ajuste.run.facets import MeasuredRun
from ajuste_search.surface.rank_correlations import correlations
from ajuste_search.surface.surfaces import surface_slices, surfaces


def run_surfaces(measured: MeasuredRun) -> tuple[Surface, ...]:
    """Return the surfaces over the levels that the kernel made; empty if these span none."""
    resolved, results, ran = measured.resolved, measured.results, _as_run(measured)
    if all(len(factor.levels) < 3 for factor in ran.factors):
        return ()
    columns = with_quantile_columns(measured.record.measurements, (*resolved.deciding, *resolved.described))
    analysis, target = resolved.study.analysis, resolved.study.target
    return surfaces(
        ran.factors,
        ran.configurations,
        units(resolved, columns),
        mean_metrics(resolved.deciding),
        mean_metrics(resolved.described),
        results.verdicts,
        Promise(analysis.confidence, analysis.smallest_effect, order_matters=target.clock == "wall"),
    )


def run_correlations(measured: MeasuredRun) -> tuple[Correlation, ...]:
    """Return the correlations of the deciding means with all other metrics; empty without surfaces."""
    resolved, results, ran = measured.resolved, measured.results, _as_run(measured)
    if not surface_slices(ran.factors, ran.configurations):
        return ()
    deciding, metrics = mean_metrics(resolved.deciding), mean_metrics(results.metrics)
    return correlations(results.configurations, deciding, metrics, resolved.study.analysis.confidence)


def _as_run(measured: MeasuredRun) -> AsRun:
    resolved = measured.resolved
    return as_run(resolved.factors, configurations(resolved), measured.results.configurations)

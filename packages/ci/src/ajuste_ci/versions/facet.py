"""The histories of a run: its metrics over the versions of a kernel or a project."""

from __future__ import annotations

from ajuste.model.history import History
from ajuste.run.facets import MeasuredRun


def find(measured: MeasuredRun) -> tuple[History, ...] | None:
    """Return a history of each deciding mean; None if no factor has versions."""
    resolved = measured.resolved
    versions = any(factor.has_versions for factor in resolved.factors)
    if not versions or resolved.kind or resolved.study.design.judges_effects:
        return None
    from ajuste.analysis.block_values import Promise  # few runs compare versions
    from ajuste.analysis.pairs import units
    from ajuste.analysis.results import configurations, mean_metrics
    from ajuste.analysis.summary import with_quantile_columns
    from ajuste_ci.versions.histories import histories

    columns = with_quantile_columns(measured.record.measurements, (*resolved.deciding, *resolved.described))
    analysis, target = resolved.study.analysis, resolved.study.target
    return histories(
        resolved.factors,
        configurations(resolved),
        units(resolved, columns),
        mean_metrics(resolved.deciding),
        Promise(analysis.confidence, analysis.smallest_effect, order_matters=target.clock == "wall"),
    )

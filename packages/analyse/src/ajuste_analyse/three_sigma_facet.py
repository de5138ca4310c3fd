"""The 3-sigma rule on a run, where somebody asks for it."""

from __future__ import annotations

from ajuste.model.error import RequestError
from ajuste.model.three_sigma import ThreeSigma
from ajuste.run.facets import MeasuredRun


def find(measured: MeasuredRun) -> tuple[ThreeSigma, ...] | None:
    """Return the rows of a run whose study asks for them; None otherwise."""
    resolved = measured.resolved
    return None if resolved.kind or not resolved.study.analysis.three_sigma else _rows(measured)


def requested(measured: MeasuredRun) -> tuple[ThreeSigma, ...]:
    """Return the rows of any run. Raises RequestError if it does not compare means of configurations one by one."""
    resolved = measured.resolved
    one_by_one = not resolved.kind and not resolved.study.design.judges_effects
    means = any(metric.quantile is None for metric in resolved.deciding)
    if not one_by_one or not means or len(resolved.configurations) < 2:
        raise RequestError(
            f"--three-sigma: the run {measured.run.id} does not compare means of configurations one by one",
            hint="remove --three-sigma",
        )
    return _rows(measured)


def _rows(measured: MeasuredRun) -> tuple[ThreeSigma, ...]:
    from ajuste.analysis.pairs import units  # stored results need no statistics
    from ajuste.analysis.results import configurations, mean_metrics
    from ajuste.analysis.summary import with_quantile_columns
    from ajuste_analyse.three_sigma import three_sigma

    resolved, results = measured.resolved, measured.results
    columns = with_quantile_columns(measured.record.measurements, (*resolved.deciding, *resolved.described))
    clean, deciding = units(resolved, columns), mean_metrics(resolved.deciding)
    return three_sigma(configurations(resolved), clean, deciding, results.verdicts, results.level)

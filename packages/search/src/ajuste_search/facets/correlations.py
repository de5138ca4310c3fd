"""The correlations of deciding metrics with all others, over the points of surfaces."""

from __future__ import annotations

from ajuste.model.surface import Correlation
from ajuste.run.facets import MeasuredRun
from ajuste_search.facets.surfaces import can_span


def find(measured: MeasuredRun) -> tuple[Correlation, ...] | None:
    """Return the correlations of a run with surfaces; None if its factors span none."""
    if not can_span(measured):
        return None
    from ajuste_search.surface.assembly import run_correlations  # few runs have any

    return run_correlations(measured)

"""The surfaces that numeric factors span."""

from __future__ import annotations

from ajuste.model.surface import Surface
from ajuste.run.facets import MeasuredRun


def can_span(measured: MeasuredRun) -> bool:
    """Return whether factors may span a surface: designs that judge effects, and ablations, have only the corners."""
    resolved = measured.resolved
    only_corners = resolved.kind or resolved.study.design.judges_effects
    return not only_corners and any(len(factor.levels) > 2 for factor in resolved.factors)


def find(measured: MeasuredRun) -> tuple[Surface, ...] | None:
    """Return the surfaces of a run; None if its factors span none."""
    if not can_span(measured):
        return None
    from ajuste_search.surface.assembly import run_surfaces  # few runs have any

    return run_surfaces(measured)

"""Surfaces in ``--json``: what others build on."""

from __future__ import annotations

from ajuste.model.facets import FACETS
from ajuste.model.surface import CORRELATIONS, SURFACES


def test_results_without_a_surface_have_none() -> None:
    assert {SURFACES, CORRELATIONS} <= set(FACETS)
    assert SURFACES.document(SURFACES.absent) | CORRELATIONS.document(CORRELATIONS.absent) == {
        "surfaces": [],
        "correlations": [],
    }

"""Surfaces in ``--json``: what others build on."""

from __future__ import annotations

from ajuste.model.results import Results


def test_results_without_a_surface_have_none() -> None:
    assert Results.model_fields["surfaces"].default == Results.model_fields["correlations"].default == ()

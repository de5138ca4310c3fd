"""The findings of a search."""

from __future__ import annotations

from ajuste.run.facets import MeasuredRun
from ajuste_search.tuning.model import Tuning, tuning_of


def find(measured: MeasuredRun) -> Tuning | None:
    """Return what the results of a search have; None of a run without one."""
    return tuning_of(measured.results)

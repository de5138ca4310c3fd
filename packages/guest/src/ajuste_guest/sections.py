"""The sections on trials that were recorded: scheduling, costs, and where decisions part."""

from __future__ import annotations

from ajuste.model.results import Results
from ajuste.report.document import Section
from ajuste.report.format import Labels
from ajuste_guest.report.costs import costs_sections
from ajuste_guest.report.divergence import divergence_sections
from ajuste_guest.report.scheduling import scheduling_sections


def sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return the sections of all explanations."""
    return (
        *scheduling_sections(results, labels),
        *costs_sections(results, labels),
        *divergence_sections(results, labels),
    )

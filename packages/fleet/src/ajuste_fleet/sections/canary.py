"""The section on the order in which machines began, where too few measured for one on machines like them."""

from __future__ import annotations

from typing import Final

from ajuste.model.results import Results
from ajuste.report.document import Section
from ajuste.report.format import Labels
from ajuste_fleet.report import fleet_section

PLACE: Final = "answer"


def sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return the section; empty if that on the machines has the order."""
    return () if "fleet" in results.facets else (fleet_section(results, labels),)

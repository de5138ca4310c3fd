"""The section on machines like those that measured, with the order in which they began."""

from __future__ import annotations

from typing import Final

from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.report.document import Section
from ajuste.report.format import Labels
from ajuste_fleet.report import fleet_section, headline_of

PLACE: Final = "answer"


def sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return the section."""
    return (fleet_section(results, labels),)


def headline(results: Results, name: str, title: str, verdict: Verdict) -> str:
    """Return on how many machines ``name`` has which effect; empty for few machines."""
    return headline_of(results, name, title, verdict)

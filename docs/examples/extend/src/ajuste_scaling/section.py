"""The section on the speed-up on more CPUs."""

from __future__ import annotations

from typing import Final

from ajuste.model.results import Results
from ajuste.report.document import Column, Paragraph, Row, Section, Table
from ajuste.report.format import Labels

PLACE: Final = "answer"


def sections(results: Results, _: Labels) -> tuple[Section, ...]:
    """Return the section with a row for each number of CPUs."""
    scaling = results.facets["scaling"]
    rows = (Row((number, f"×{speedup:.2f}")) for number, speedup in scaling["speedups"].items())
    table = Table.of((Column("CPUs"), Column("Speed-up")), rows, "scaling")
    serial = scaling["serial"]
    share = () if serial is None else (Paragraph(f"{serial:.0%} of the work runs on one CPU only."),)
    return (Section("Scaling", (*share, table), "scaling", "Scaling"),)

"""What the kernels of a run were seen to have, before anything was measured."""

from __future__ import annotations

from typing import Final

from ajuste.model.proof import PROOFS, Proof, Shown
from ajuste.model.results import Results
from ajuste.report.kept import kept
from ajuste.report.listing import Group, Line, Listing
from ajuste.report.visible import visible_line

_COLUMNS: Final = ("Taken for", "Seen", "Its configuration")
LEAD: Final = (
    "Read from each kernel while it ran, before anything was measured. The configuration is what it was built from, "
    "and proves nothing."
)


def proofs_of(results: Results) -> dict[str, Proof]:
    """The proofs by the name of the machine; one that is not understood is left out."""
    return kept(results, PROOFS, Proof)


def proofs_listing(results: Results) -> Listing | None:
    """The table of the terminal, without the evidence, or ``None`` if nothing had to be proved."""
    groups = tuple(Group(name, tuple(map(_line, proof.features))) for name, proof in proofs_of(results).items())
    if not groups:
        return None
    return Listing("proofs", "What the kernels were seen to have", LEAD, _COLUMNS, groups, words=_COLUMNS)


def options_in_words(shown: Shown) -> str:
    """``NUMA=y, ACPI_NUMA=y``."""
    return ", ".join(f"{name.removeprefix('CONFIG_')}={value}" for name, value in shown.options.items())


def _line(shown: Shown) -> Line:
    cells = (shown.claim, shown.state, options_in_words(shown))
    return Line(name=visible_line(shown.feature), cells=tuple(map(visible_line, cells)))

"""What the kernels of a run were seen to have, before anything was measured."""

from __future__ import annotations

from typing import Final

from ajuste.model.kernel import KERNEL_OPTIONS, PROOFS, DifferingOption, KernelOptions, Proof, Shown
from ajuste.model.results import Results
from ajuste.model.wording import visible_line
from ajuste.report.format import count_of
from ajuste.report.listing import Group, Listing, ListingLine, kept

_COLUMNS: Final = ("Taken for", "Seen", "Its configuration")
LEAD: Final = (
    "Read from each running kernel before the measurement. The configuration from which a kernel was built proves "
    "nothing."
)


def proofs_of(results: Results) -> dict[str, Proof]:
    """The proofs by the name of the machine; one that is not understood is left out."""
    return kept(results, PROOFS, Proof)


def proofs_listing(results: Results) -> Listing | None:
    """The table of the terminal, without the evidence, or ``None`` if nothing had to be proved."""
    groups = tuple(Group(name, tuple(map(_line, proof.features))) for name, proof in proofs_of(results).items())
    if not groups:
        return None
    return Listing("proofs", "Features found in the running kernels", LEAD, _COLUMNS, groups, words=_COLUMNS)


def options_in_words(shown: Shown) -> str:
    """``NUMA=y, ACPI_NUMA=y``."""
    return ", ".join(f"{name.removeprefix('CONFIG_')}={value}" for name, value in shown.options.items())


def _line(shown: Shown) -> ListingLine:
    cells = (shown.claim, shown.state, options_in_words(shown))
    return ListingLine(name=visible_line(shown.feature), cells=tuple(map(visible_line, cells)))


# In which build options the kernels of a run differ, as a table.


_WORDS: Final = ("Because", "What it is")
_KERNEL_OPTIONS_COLUMNS: Final = ("Baseline", "Here", *_WORDS)
_LEAD: Final = "By the configurations that they were built from, against the baseline's kernel."


def kernel_options_listing(results: Results) -> Listing | None:
    """The table, or ``None`` if there is nothing to be told."""
    found = kept(results, KERNEL_OPTIONS, KernelOptions)
    groups = tuple(
        Group(_title(name, one), tuple(map(_kernel_options_line, one.options))) for name, one in found.items()
    )
    if not groups:
        return None
    title = "How the kernels' options differ"
    return Listing(
        "kernel-options", title, _LEAD, _KERNEL_OPTIONS_COLUMNS, groups, optional=True, heading="Option", words=_WORDS
    )


def _title(name: str, found: KernelOptions) -> str:
    shown = "" if found.total == len(found.options) else f", of which {len(found.options)} are shown"
    return f"{name}: {count_of(found.total, 'option')} different from {found.baseline}{shown}"


def _kernel_options_line(option: DifferingOption) -> ListingLine:
    return ListingLine(name=option.name, cells=(option.baseline, option.own, option.because, option.title))

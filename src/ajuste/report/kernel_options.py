"""In which build options the kernels of a run differ, as a table."""

from __future__ import annotations

from typing import Final

from ajuste.model.kernel_options import KERNEL_OPTIONS, KernelOptions, Option
from ajuste.model.results import Results
from ajuste.report.format import count_of
from ajuste.report.kept import kept
from ajuste.report.listing import Group, Line, Listing

_WORDS: Final = ("Because", "What it is")
_COLUMNS: Final = ("Baseline", "Here", *_WORDS)
_LEAD: Final = "By the configurations that they were built from, against the baseline's kernel."


def kernel_options_listing(results: Results) -> Listing | None:
    """The table, or ``None`` if there is nothing to be told."""
    found = kept(results, KERNEL_OPTIONS, KernelOptions)
    groups = tuple(Group(_title(name, one), tuple(map(_line, one.options))) for name, one in found.items())
    if not groups:
        return None
    title = "How the kernels' options differ"
    return Listing("kernel-options", title, _LEAD, _COLUMNS, groups, optional=True, heading="Option", words=_WORDS)


def _title(name: str, found: KernelOptions) -> str:
    shown = "" if found.total == len(found.options) else f", of which {len(found.options)} are shown"
    return f"{name}: {count_of(found.total, 'option')} otherwise than in {found.baseline}{shown}"


def _line(option: Option) -> Line:
    return Line(name=option.name, cells=(option.baseline, option.own, option.because, option.title))

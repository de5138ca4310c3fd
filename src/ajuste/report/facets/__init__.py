"""Sections on what only some runs have, one module each, named as its field or facet of the results.

Each has ``sections(results, labels)``, and ``FIRST = True`` where they come before the notes. Only those are loaded
that have something to tell. One of another package may have ``headline(results, name, title, verdict)``: a sentence on
an undecided verdict, or an empty text.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ajuste.model.plugins import isolated, modules
from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.report.document import Section
from ajuste.report.format import Labels


def facet_sections(results: Results, labels: Labels, *, first: bool) -> Iterator[Section]:
    """Yield the sections of all facets that ``results`` have: those that come ``first``, or the others."""

    def has(name: str) -> bool:
        return bool(results.facets.get(name))

    for module in modules(sys.modules[__name__], "sections", has).values():
        with isolated(module):
            if getattr(module, "FIRST", False) == first:
                yield from module.sections(results, labels)


def facet_headline(results: Results, name: str, title: str, verdict: Verdict) -> str:
    """Return the sentence that a facet has on an undecided verdict for ``name``; empty if none has one."""
    for module in modules(sys.modules[__name__], "sections", results.facets.__contains__).values():
        with isolated(module):
            if hasattr(module, "headline") and (text := str(module.headline(results, name, title, verdict))):
                return text
    return ""

"""Sections on what only some runs have, one module each, named as its field or facet of the results.

Each has ``sections(results, labels)``, and ``FIRST = True`` where they come before the notes. Only those are loaded
that have something to tell.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ajuste.model.plugins import isolated, modules
from ajuste.model.results import Results
from ajuste.report.document import Section
from ajuste.report.format import Labels


def facet_sections(results: Results, labels: Labels, *, first: bool) -> Iterator[Section]:
    """Yield the sections of all facets that ``results`` have: those that come ``first``, or the others."""

    def has(name: str) -> bool:
        return bool(getattr(results, name, None)) or name in results.facets

    for module in modules(sys.modules[__name__], "sections", has).values():
        with isolated(module):
            if getattr(module, "FIRST", False) == first:
                yield from module.sections(results, labels)

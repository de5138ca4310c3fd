"""Sections on what only some runs have, one module each, named as its field or facet of the results.

Each has ``sections(results, labels)``, and ``FIRST = True`` where they come before the notes. Only those are loaded
that have something to tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from ajuste.model.error import RequestError
from ajuste.model.plugins import add_problem, isolated, plugins
from ajuste.model.results import Results
from ajuste.report.document import Section
from ajuste.report.format import Labels


def facet_sections(results: Results, labels: Labels, *, first: bool) -> Iterator[Section]:
    """Yield the sections of all facets that ``results`` have: those that come ``first``, or the others."""
    added = plugins("sections")
    for name in sorted({*(module.name for module in iter_modules(__path__)), *added}):
        if not getattr(results, name, None) and name not in results.facets:
            continue
        try:
            module = added[name].load() if name in added else import_module(f"{__name__}.{name}")
        except RequestError as error:
            add_problem(error.message)
            continue
        with isolated(module):
            if getattr(module, "FIRST", False) == first:
                yield from module.sections(results, labels)

"""Sections on what only some runs have, one module each, named as its facet of the results.

Each has ``sections(results, labels)``. Only those are loaded that have something to tell. A module may also have:

- ``PLACE``: where its sections come (``Place``); without it last
- ``headline(results, name, title, verdict)``: a sentence on an undecided verdict, or an empty text
- ``plots(results, metric, name)``: pictures of a deciding metric, named ``name-…``
- ``compared(results)``: the configurations that verdicts are on, where others were only tried
- ``draws(results, metric)``: whether its pictures show how a metric depends on the factors, so that no others need to
- ``objection(results, configuration)``: the error to raise for a configuration that must not be put to use, or None
- ``MORE_BLOCKS``: False where no further blocks settle what is undecided
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from types import ModuleType
from typing import Literal

from ajuste.model.error import RequestError
from ajuste.model.metric import Metric
from ajuste.model.plugins import isolated, modules
from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.report.document import Section
from ajuste.report.format import Labels
from ajuste.report.plots.plot import Plot

Place = Literal["answer", "metrics", "last"]
"""After the answer with its tables, before the pictures of the metrics, or after them."""


def facet_sections(results: Results, labels: Labels, place: Place) -> Iterator[Section]:
    """Yield the sections of all facets that ``results`` have and that belong to ``place``."""
    for module in _facets(results):
        with isolated(module):
            if getattr(module, "PLACE", "last") == place:
                yield from module.sections(results, labels)


def facet_headline(results: Results, name: str, title: str, verdict: Verdict) -> str:
    """Return the sentence that a facet has on an undecided verdict for ``name``; empty if none has one."""
    for module in _facets(results, "headline"):
        with isolated(module):
            if text := str(module.headline(results, name, title, verdict)):
                return text
    return ""


def facet_plots(results: Results, metric: Metric, name: str) -> Iterator[Plot]:
    """Yield the pictures that facets have of a deciding metric; their names begin with ``name``."""
    for module in _facets(results, "plots"):
        with isolated(module):
            yield from module.plots(results, metric, name)


def compared_configurations(results: Results) -> Collection[str]:
    """Return the names of the configurations that verdicts are on; others were only tried."""
    for module in _facets(results, "compared"):
        with isolated(module):
            names: Collection[str] = module.compared(results)
            return names
    return {configuration.name for configuration in results.configurations}


def is_drawn(results: Results, metric: str) -> bool:
    """Return whether pictures of a facet show how ``metric`` depends on the factors."""
    for module in _facets(results, "draws"):
        with isolated(module):
            if module.draws(results, metric):
                return True
    return False


def objection(results: Results, configuration: str) -> RequestError | None:
    """Return why ``configuration`` must not be put to use, whatever its verdicts are; None if nothing is against it."""
    objections = (module.objection(results, configuration) for module in _facets(results, "objection"))
    return next((error for error in objections if error is not None), None)


def is_settled_by_blocks(results: Results) -> bool:
    """Return whether further blocks would settle what is undecided."""
    return all(module.MORE_BLOCKS for module in _facets(results, "MORE_BLOCKS"))


def _facets(results: Results, has: str = "sections") -> Iterator[ModuleType]:
    def wanted(name: str) -> bool:
        return bool(results.facets.get(name))

    loaded = modules(sys.modules[__name__], "sections", wanted)
    return (module for module in loaded.values() if hasattr(module, has))

"""Facets of results that Ajuste itself has; packages have further ones."""

from __future__ import annotations

from typing import Any, Final

from ajuste.model.continuation import CONTINUATION, REPRODUCE
from ajuste.model.diagnostic import DIAGNOSTICS
from ajuste.model.explained import EXPLAINED
from ajuste.model.facet import Facet
from ajuste.model.history import HISTORIES
from ajuste.model.origin import ELSEWHERE, IMPORTED
from ajuste.model.prediction import PREDICTIONS, RULE
from ajuste.model.relevance import NO_CHANCE
from ajuste.model.results import Results
from ajuste.model.surface import CORRELATIONS, SURFACES
from ajuste.model.three_sigma import THREE_SIGMA
from ajuste.model.timeline import TIMELINES
from ajuste.model.verdict import CELLS, EFFECTS, EFFECTS_CORRECTION, LINES, MACHINES, RANKINGS

DESIGN: Final = Facet[str]("design", str, "")
"""Sentences on how the trials were ordered and allotted."""

RECORDED: Final = "explanations"
"""Key of the explanations of recorded trials: ``ajuste.model.explanation.EXPLANATIONS``, whose models are many."""

FACETS: Final[tuple[Facet[Any], ...]] = (
    DESIGN,
    RANKINGS,
    EFFECTS,
    EFFECTS_CORRECTION,
    CELLS,
    SURFACES,
    CORRELATIONS,
    LINES,
    HISTORIES,
    MACHINES,
    DIAGNOSTICS,
    THREE_SIGMA,
    ELSEWHERE,
    RULE,
    PREDICTIONS,
    TIMELINES,
    EXPLAINED,
    REPRODUCE,
    CONTINUATION,
    NO_CHANCE,
    IMPORTED,
)


def stored_results(document: str | bytes) -> Results:
    """Return results from their document. Raises ValueError for one of another form, as another version of Ajuste may
    have written: also of a facet.
    """
    results = Results.model_validate_json(document)
    for facet in FACETS:
        facet.of(results)
    if results.facets.get(RECORDED):
        from ajuste.model.explanation import EXPLANATIONS  # few runs have any

        EXPLANATIONS.of(results)
    return results

"""Facets of results, which only some runs have, one module each: ``find(run)`` returns it, or None.

What has a field of its own in the results is kept there by its name, all else as a document in ``facets``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ajuste.model.base import BaseModel
from ajuste.model.plugins import isolated, modules
from ajuste.model.results import Results
from ajuste.study.resolved import ResolvedStudy

if TYPE_CHECKING:
    from ajuste.store.record import KeptRecord
    from ajuste.store.store import Run, Store


@dataclass(frozen=True)
class MeasuredRun:
    """A run with the results that all runs have; its ``record`` are its trials in the ``store``."""

    run: Run
    store: Store
    record: KeptRecord
    resolved: ResolvedStudy
    results: Results


def with_facets(measured: MeasuredRun) -> Results:
    """Return the results with all that only some runs have."""
    values: dict[str, BaseModel] = {}
    for name, module in modules(sys.modules[__name__], "facets").items():
        with isolated(module):
            if (value := module.find(measured)) is not None:
                values[name] = value
    fields: dict[str, Any] = {name: value for name, value in values.items() if name in Results.model_fields}
    facets = {name: value.model_dump(mode="json") for name, value in values.items() if name not in fields}
    return measured.results.model_copy(update={**fields, "facets": facets})
